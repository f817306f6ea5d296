#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweep/inputs.hpp"
#include "sweep/plans.hpp"

namespace hipress::sweep {

/// Cache keys: hashes of everything that an outcome depends on. In all sweeps, equal keys mean
/// equal outcomes.
class Identities {
 public:
  /// `inputs` must outlive this object. `evaluations` is the budget of each search.
  Identities(const SweepInputs& inputs, std::int64_t evaluations);

  /// Reason why there are no keys: an input is a pipe, which can be read only once. Empty: keys
  /// exist.
  const std::string& why_none() const { return why_none_; }
  /// Key of the outcome of a role at a point: 64 hexadecimal digits.
  std::string outcome(const Point& point, Role role) const;
  /// Key of the plan that a search finds at a point: 64 hexadecimal digits.
  std::string plan(const Point& point) const;
  /// Provenance of the sweep, one line per input, such as "model vgg19: 0123456789abcdef".
  std::vector<std::string> provenance() const;

 private:
  /// Name and value of an axis. If the value names a file, its fingerprint is added.
  std::string text(const Point& point, Axis axis) const;
  std::string machines(const Point& point) const;
  void read_contents(Axis axis);

  const SweepInputs& inputs_;
  const std::int64_t evaluations_;
  std::string program_;   ///< version and build ID of this program
  std::string programs_;  ///< trusted CompLL programs, with fingerprints
  std::map<std::pair<Axis, std::uint32_t>, std::string> contents_;  ///< fingerprints of files
  std::string why_none_;
};

}  // namespace hipress::sweep
