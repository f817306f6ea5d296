#pragma once

#include "kernels/codec/codec.hpp"
#include "kernels/frames/compiled_algorithm.hpp"

namespace hipress::kernels {

/// Base of compiled algorithms' codecs on every device: compiled code with its parameters bound.
class AlgorithmCodec : public Codec {
 public:
  /// `values` are the parameters in the algorithm's order; `program` must outlive the codec.
  AlgorithmCodec(const CompiledAlgorithm& program, const double* values) : program_(program) {
    program_.bind(values, bound_);
    traits_.state_arrays = program_.state_arrays;
    traits_.error_feedback = program_.state_arrays > 0;
    for (int i = 0; i < program_.parameter_count; ++i) {
      if (program_.parameters[i].own && values[i] != 0) traits_.own_optimizer = true;
    }
    traits_.sparse = program_.cuda.kind == CudaKind::kSparsifier;
  }

  const CodecTraits& traits() const override { return traits_; }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return program_.encoded_bytes(bound_, elements);
  }

 protected:
  const CompiledAlgorithm& program_;
  BoundAlgorithm bound_ = {};

 private:
  CodecTraits traits_;
};

}  // namespace hipress::kernels
