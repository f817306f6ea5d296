#pragma once

#include <memory>
#include <utility>

#include "kernels/codec/codec.hpp"
#include "kernels/frames/compiled_algorithm.hpp"
#include "kernels/host/isa.hpp"

/// Codecs of compiled algorithms and of casts on CPUs. They run the host loops.
/// registry/registry.cpp makes them.
namespace hipress::kernels {

template <class Format>
constexpr CodecTraits cast_traits() {
  CodecTraits traits;
  traits.half_precision = true;
  traits.message_values = Format::kValues;
  return traits;
}

/// Makes the codec of an algorithm on the CPU. `program` is its code for `isa` and must outlive the
/// codec; `values` are its parameters.
std::unique_ptr<Codec> make_host_algorithm(const CompiledAlgorithm& program, const double* values,
                                           Isa isa);

/// Makes the codec of a cast on the CPU, with the loops of `isa`.
template <class Format>
std::unique_ptr<Codec> make_host_cast(Isa isa);

}  // namespace hipress::kernels
