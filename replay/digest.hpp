#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace hipress::replay {

/// A 64-bit digest of the bits of fp32 values, in eight lanes of multiply-and-rotate. Each lane is
/// a bijection of its state, so one wrong element is always detected. Several wrong elements are
/// detected with a probability of about 1 - 2^-64.
class Digest {
 public:
  /// Every update but the last must have a multiple of this many values.
  static constexpr std::size_t kStripe = 16;

  void update(std::span<const float> values) {
    const std::size_t whole = values.size() / kStripe * kStripe;
    for (std::size_t i = 0; i < whole; i += kStripe) absorb(values.data() + i);
    if (whole < values.size()) {
      float tail[kStripe] = {};
      std::memcpy(tail, values.data() + whole, (values.size() - whole) * sizeof(float));
      absorb(tail);
    }
    length_ += values.size();
  }

  std::uint64_t value() const {
    std::uint64_t all = length_;
    for (const std::uint64_t lane : lanes_) all = step(all, lane);
    return all ^ (all >> 29);
  }

 private:
  static constexpr std::size_t kLanes = kStripe * sizeof(float) / sizeof(std::uint64_t);

  static std::uint64_t step(std::uint64_t state, std::uint64_t word) {
    const std::uint64_t product = (state ^ word) * 0x9e3779b97f4a7c15ULL;
    return product << 32 | product >> 32;  // swaps the halves: the product's high bits, which
                                           // depend on all bits, then meet the next word's low bits
  }

  void absorb(const float* stripe) {
    std::array<std::uint64_t, kLanes> words;
    std::memcpy(words.data(), stripe, sizeof words);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes_[lane] = step(lanes_[lane], words[lane]);
    }
  }

  std::array<std::uint64_t, kLanes> lanes_{1, 2, 3, 4, 5, 6, 7, 8};
  std::uint64_t length_ = 0;
};

inline std::uint64_t digest(std::span<const float> values) {
  Digest whole;
  whole.update(values);
  return whole.value();
}

}  // namespace hipress::replay
