#pragma once

#include <memory>
#include <utility>

#include "kernels/codec.hpp"
#include "kernels/isa.hpp"

/// The Codec interface over the host loops; registry.cpp makes these.
namespace hipress::kernels {

/// What does not depend on parameters' values, for a quantiser.
template <class Algorithm>
constexpr CodecTraits quantizer_traits() {
  CodecTraits traits;
  traits.state_arrays = Algorithm::kErrorFeedback ? 1 : 0;
  traits.error_feedback = Algorithm::kErrorFeedback;
  return traits;
}

constexpr CodecTraits cast_traits() {
  CodecTraits traits;
  traits.half_precision = true;
  return traits;
}

/// A quantiser on the CPU, with the loops of `isa`.
template <class Algorithm>
std::unique_ptr<Codec> make_host_quantizer(const Algorithm& algorithm, Isa isa);

/// A cast on the CPU, with the loops of `isa`.
template <class Format>
std::unique_ptr<Codec> make_host_cast(Isa isa);

}  // namespace hipress::kernels
