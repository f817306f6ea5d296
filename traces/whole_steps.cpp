#include "traces/whole_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"

namespace hipress::traces {
namespace {

/// True if a step has gradients, or collectives that may carry them.
bool has_parts(const TracedStep& step, const ImportOptions& options) {
  return !step.gradients.empty() || !step.buckets.empty() ||
         (options.every_all_reduce && !step.other_all_reduces.empty());
}

/// Number of a step's gradients; if it has none, of its buckets.
std::size_t count_of(const TracedStep& step) {
  return step.gradients.empty() ? step.buckets.size() : step.gradients.size();
}

}  // namespace

void check_conserved(const Steps& steps, Parts parts, std::string_view what) {
  const TracedStep* first = nullptr;
  for (const TracedStep* step : steps) {
    const auto total = total_of(step->*parts);
    if (!total) {
      throw io::Unmet(
          fmt::format("no model: {} has {} {}, not all of which have sizes; leave out steps that "
                      "are cut off (schedule of the profiler)",
                      step->name, (step->*parts).size(), what));
    }
    if (first == nullptr) first = step;
    if (*total == *total_of(first->*parts)) continue;
    throw io::Unmet(fmt::format(
        "no model: elements are not conserved: the {} of {} have {} elements, those of {} {}; "
        "leave out steps that differ (schedule of the profiler), and trace one model alone where "
        "several are trained in turn",
        what, first->name, *total_of(first->*parts), step->name, *total));
  }
}

Steps whole_steps(const Imported& trace, const ImportOptions& options,
                  std::vector<std::string>& diagnostics) {
  Steps steps;
  for (const TracedStep& step : trace.steps) {
    if (has_parts(step, options)) {
      steps.push_back(&step);
    }
  }
  if (steps.empty()) return steps;
  std::vector<std::string> empty;
  for (const TracedStep& step : trace.steps) {
    if (!has_parts(step, options)) empty.push_back(step.name);
  }
  if (!empty.empty()) {
    diagnostics.push_back(fmt::format(
        "{}{} left out: no gradient is in {}, as in the profiler's last step if training ends "
        "before its schedule does",
        empty.front(), empty.size() > 1 ? fmt::format(" and {} more are", empty.size() - 1) : " is",
        empty.size() > 1 ? "them" : "it"));
  }
  std::size_t most = 0;
  for (const TracedStep* step : steps) most = std::max(most, count_of(*step));
  const auto leave_out = [&](const TracedStep& step) {
    diagnostics.push_back(fmt::format("{} is left out: it is cut off, with {} of {} gradients",
                                      step.name, count_of(step), most));
  };
  if (steps.size() > 2 && count_of(*steps.back()) < most) {
    leave_out(*steps.back());
    steps.pop_back();
  }
  if (steps.size() > 2 && count_of(*steps.front()) < most) {
    leave_out(*steps.front());
    steps.erase(steps.begin());
  }
  return steps;
}

Steps alike_last(const Steps& steps, Parts parts, std::vector<std::string>& diagnostics) {
  Steps alike;
  for (const TracedStep* step : steps) {
    if (same_layout(step->*parts, steps.back()->*parts) &&
        step->micro_steps == steps.back()->micro_steps) {
      alike.push_back(step);
    }
  }
  if (alike.size() < steps.size()) {
    diagnostics.push_back(fmt::format(
        "{} of the {} steps have other gradients, buckets or micro-steps than the last, or another "
        "order, and are left out of the medians",
        steps.size() - alike.size(), steps.size()));
  }
  return alike;
}

}  // namespace hipress::traces
