#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hipress::sim {

/// Two rounds of SplitMix64's finaliser (Steele, Lea, Flood 2014): every bit of the input affects
/// every bit of the result.
std::uint64_t mix(std::uint64_t bits);

/// Random factors of task times: each task draws one of equally likely factors. A draw depends on
/// (seed, replica, task) only, so it is the same in any order and on every compiler.
class Jitter {
 public:
  /// Parses a jitter. "lognormal:S": S is the standard deviation of the factor's logarithm, 0 to 2;
  /// the mean is 1. "uniform:W": factors from 1−W to 1+W, W 0 to 1. "samples:FILE": equally likely
  /// factors, one per line. Throws InputError that lists these, or names the file's line.
  static Jitter parse(const std::string& text);
  /// Uses these factors; each must be finite and 0 to 1000 (InputError).
  explicit Jitter(const std::vector<double>& factors);

  /// Factor of every task if all factors are equal; else nullopt.
  std::optional<double> constant() const;

  /// Selects the draws. Different seeds or replicas draw independently.
  struct Draws {
    std::uint64_t seed = 0;
    std::uint32_t replica = 0;
  };
  /// `work` times the task's factor, rounded to the nearest picosecond; at most what 64 bits hold.
  std::int64_t apply(std::int64_t work, const Draws& draws, std::uint32_t task) const;

 private:
  std::vector<std::uint64_t> factors_;  // in units of 2^-32
};

}  // namespace hipress::sim
