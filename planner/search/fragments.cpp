#include "planner/search/fragments.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "planner/choices/choices.hpp"
#include "planner/problem/budget.hpp"
#include "planner/rules/alone.hpp"
#include "planner/rules/secopa.hpp"
#include "planner/timing/evaluation.hpp"

namespace hipress::planner {
namespace {

/// Options of a fragment: raw, or an algorithm that sends slices, each with every number of
/// partitions. Adds these algorithms to the plan.
std::vector<casync::Decision> options_of_fragments(const Problem& problem, casync::Plan& plan) {
  if (sends_raw_alone(plan.topology)) return {};
  for (const std::string& name : of_slices(problem.algorithms)) place_in(plan.algorithms, name);
  std::vector<casync::Decision> options;
  const auto nodes = static_cast<std::int32_t>(problem.nodes);
  for (std::int8_t a = casync::kRaw; a < static_cast<int>(plan.algorithms.size()); ++a) {
    for (const std::int32_t partitions : {nodes, 2 * nodes, 4 * nodes}) {
      options.push_back({a, partitions});
    }
    if (!folded_only(problem)) options.push_back({a, 1});
  }
  return options;
}

void set(casync::Plan& plan, const std::vector<std::uint32_t>& part_of, std::uint32_t part,
         const casync::Decision& option) {
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    if (part_of[g] == part) plan.decisions[g] = option;
  }
}

/// Local search for a plan of the problem's schedule, until the problem's limits are reached.
class FragmentSearch {
 public:
  explicit FragmentSearch(const Problem& problem)
      : problem_(problem),
        table_(problem.schedule.timetable(problem.model)),
        budget_(problem.limits) {}

  SearchResult run() {
    for (const std::string& topology : topologies_of(problem_)) start_in(topology);
    if (!best_) throw io::InputError(refusal_);
    improve();
    return {.plan = std::move(best_->plan),
            .diagnostics = {},
            .evaluations = budget_.used(),
            .complete = !budget_.interrupted()};
  }

 private:
  struct Timed {
    casync::Plan plan;
    double step_s = 0;
  };

  bool has_time() const { return !budget_.interrupted() && budget_.share() < 1; }

  /// Simulated time of a step. Unset if the topology cannot carry the plan, or if no time is left.
  std::optional<double> step_s(const casync::Plan& plan) {
    try {
      budget_.count(1);
      AffordableTime time = affordable_iteration(problem_.model, plan, *problem_.machines);
      if (!time.iteration_s) {
        refusal_ = time.diagnostic + "; take `topology` ALLREDUCE, fewer nodes or fewer steps";
      }
      return time.iteration_s;
    } catch (const std::invalid_argument& error) {
      refusal_ = error.what();
      return std::nullopt;
    }
  }

  /// Takes the first plan, and then plans that are faster than the best by more than the tolerance.
  bool consider(casync::Plan plan) {
    const std::optional<double> time_s = step_s(plan);
    if (!time_s) return false;
    const double slack = 1 + problem_.tolerance;
    if (best_ && *time_s * slack >= best_->step_s) return false;
    best_ = {std::move(plan), *time_s};
    return true;
  }

  /// Tries the rules, those with the least loss first.
  void start_in(const std::string& topology) {
    Problem in_topology = problem_;
    in_topology.topology = topology;
    const auto try_rule = [&](casync::Plan (*rule)(const Problem&)) {
      if (best_ && !has_time()) return;
      casync::Plan plan = rule(in_topology);
      plan.schedule = problem_.schedule;
      plan.gpus_per_node = problem_.machines->cluster.gpus_per_node;
      consider(std::move(plan));
    };
    try_rule(rules::none);
    if (problem_.algorithms.empty()) return;
    const bool halves = std::ranges::find(problem_.algorithms, "fp16") != problem_.algorithms.end();
    if (halves) try_rule(rules::fp16);
    if (sends_raw_alone(topology)) return;
    if (secopa_knows(topology)) try_rule(rules::secopa);
    try_rule(rules::all);
  }

  /// Improves one fragment at a time, until no change makes a step shorter.
  void improve() {
    const std::vector<casync::Decision> options = options_of_fragments(problem_, best_->plan);
    for (bool better = true; better && has_time();) {
      better = false;
      for (std::uint32_t part = 0; part < table_.synchronisations.size(); ++part) {
        for (const casync::Decision& option : options) {
          if (!has_time()) return;
          casync::Plan changed = best_->plan;
          set(changed, table_.part_of, part, option);
          better |= consider(std::move(changed));
        }
      }
    }
  }

  const Problem& problem_;
  casync::Timetable table_;
  Budget budget_;
  std::optional<Timed> best_;
  std::string refusal_;
};

}  // namespace

std::vector<casync::Plan> other_fragments(const Problem& problem, const casync::Plan& plan,
                                          std::uint32_t gradient) {
  casync::Plan base = plan;
  const std::vector<std::uint32_t> part_of = plan.schedule.timetable(problem.model).part_of;
  const casync::Decision& now = plan.decisions[gradient];
  std::vector<casync::Plan> others;
  for (const casync::Decision& option : options_of_fragments(problem, base)) {
    if (option == now) continue;
    set(others.emplace_back(base), part_of, part_of[gradient], option);
  }
  for (casync::Plan& one : others) one.algorithms = base.algorithms;
  return others;
}

SearchResult search_fragments(const Problem& problem) { return FragmentSearch(problem).run(); }

}  // namespace hipress::planner
