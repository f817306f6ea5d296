#pragma once

#include "kernels/codec.hpp"
#include "kernels/quantizer.hpp"
#include "kernels/quantizer_program.hpp"

namespace hipress::kernels {

/// What quantisers on every device share: a program with its parameters bound, and its messages'
/// lengths.
class QuantizerCodec : public Codec {
 public:
  /// `values` are the parameters in the program's order; the program must outlive the codec.
  QuantizerCodec(const QuantizerProgram& program, const double* values) : program_(program) {
    program_.bind(values, bound_);
    planes_ = program_.planes(bound_);
    traits_.state_arrays = program_.error_feedback ? 1 : 0;
    traits_.error_feedback = program_.error_feedback;
  }

  const CodecTraits& traits() const override { return traits_; }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return quantizer_message_bytes(elements, planes_, program_.planes_offset);
  }

 protected:
  const QuantizerProgram& program_;
  BoundQuantizer bound_ = {};
  int planes_ = 0;

 private:
  CodecTraits traits_;
};

}  // namespace hipress::kernels
