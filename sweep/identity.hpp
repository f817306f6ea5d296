#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweep/inputs.hpp"
#include "sweep/plans.hpp"

namespace hipress::sweep {

/// Names for what points come to, by content: whatever an outcome depends on is in its name, so
/// that equal names mean equal outcomes in every sweep.
class Identities {
 public:
  /// The inputs must outlive it. `evaluations` are those of searches.
  Identities(const SweepInputs& inputs, std::int64_t evaluations);

  /// Why content has no names here: an input is a pipe, which can be read once. Empty: it has.
  const std::string& why_none() const { return why_none_; }
  /// Of the outcome of a point's role, as 64 hexadecimal digits.
  std::string outcome(const Point& point, Role role) const;
  /// Of the plan that is searched for at a point.
  std::string plan(const Point& point) const;
  /// What the sweep's inputs were, a line each, for provenance: "model vgg19: 0123456789abcdef".
  std::vector<std::string> provenance() const;

 private:
  /// An axis's value with what its file holds, if it names one.
  std::string text(const Point& point, Axis axis) const;
  std::string machines(const Point& point) const;
  void read_contents(Axis axis);

  const SweepInputs& inputs_;
  const std::int64_t evaluations_;
  std::string program_;   ///< which one simulates
  std::string programs_;  ///< of CompLL that are trusted, and their contents
  std::map<std::pair<Axis, std::uint32_t>, std::string> contents_;  ///< by value of an axis
  std::string why_none_;
};

}  // namespace hipress::sweep
