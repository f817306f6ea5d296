#pragma once

#include <chrono>
#include <cstdint>

#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// Given share of the limits, for a search that runs beside others.
inline Limits share_of(const Limits& limits, double share) {
  Limits part = limits;
  part.budget_s *= share;
  if (limits.evaluations >= 0) {
    part.evaluations = static_cast<std::int64_t>(share * static_cast<double>(limits.evaluations));
  }
  return part;
}

/// Remaining budget of a search: in seconds, or in simulated plans if Limits::evaluations is given.
class Budget {
 public:
  explicit Budget(const Limits& limits)
      : limits_(limits), start_(std::chrono::steady_clock::now()) {}

  void count(std::int64_t evaluations) { used_ += evaluations; }
  std::int64_t used() const { return used_; }
  bool in_evaluations() const { return limits_.evaluations >= 0; }
  bool interrupted() const { return is_interrupted(limits_); }

  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// Used share of the budget; at least 1: used up.
  double share() const {
    if (in_evaluations()) {
      return limits_.evaluations == 0
                 ? 1
                 : static_cast<double>(used_) / static_cast<double>(limits_.evaluations);
    }
    return limits_.budget_s > 0 ? elapsed_s() / limits_.budget_s : 1;
  }
  /// True if `share_limit` of the budget is used, or the search was interrupted.
  bool over(double share_limit = 1) const { return interrupted() || share() >= share_limit; }
  /// Number of further simulations of `seconds` each until `share_limit` of the budget is used.
  double affords(double seconds, double share_limit) const {
    if (in_evaluations()) {
      return share_limit * static_cast<double>(limits_.evaluations) - static_cast<double>(used_);
    }
    return (share_limit * limits_.budget_s - elapsed_s()) / (seconds > 1e-9 ? seconds : 1e-9);
  }

 private:
  const Limits& limits_;
  std::chrono::steady_clock::time_point start_;
  std::int64_t used_ = 0;
};

}  // namespace hipress::planner
