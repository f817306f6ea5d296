#pragma once

#include "kernels/frames/sparsifier.hpp"

namespace hipress::bench::handwritten {

using namespace kernels;

/// Sends the share rho of entries whose magnitudes are the largest after momentum has accumulated
/// them since they were last sent. Lin et al., "Deep Gradient Compression", 2018.
struct Dgc {
  static constexpr std::uint16_t kTag = 4;
  static constexpr int kStates = 2;  // velocity, pending
  static constexpr bool kErrorFeedback = false;
  static constexpr int kScore = 1;
  static constexpr bool kClears[] = {true, true};

  double rho;
  float momentum;

  explicit Dgc(const double* values) : rho(values[0]), momentum(static_cast<float>(values[1])) {}
  std::int64_t count(std::int64_t elements) const {
    const auto wanted =
        static_cast<std::int64_t>(__builtin_ceil(rho * static_cast<double>(elements)));
    return wanted < elements ? wanted : elements;
  }

  struct Selection {
    float momentum;
    template <class F>
    HIPRESS_LANES F of(F value, F* state) const {
      state[0] = finite(broadcast<F>(momentum) * state[0] + value);
      state[1] = finite(state[1] + state[0]);
      return state[1];
    }
    template <class F>
    HIPRESS_LANES F first(F value) const {
      return value;
    }
    template <class F>
    HIPRESS_LANES static F finite(F value) {
      constexpr float kLargest = 0x1.fffffep+127f;
      return larger(smaller(value, broadcast<F>(kLargest)), broadcast<F>(-kLargest));
    }
  };
  HIPRESS_LANES Selection selection(std::int64_t) const { return {momentum}; }
};

}  // namespace hipress::bench::handwritten
