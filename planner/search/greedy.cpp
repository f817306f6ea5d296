#include "planner/search/greedy.hpp"

#include <algorithm>
#include <numeric>

#include "planner/search/moves.hpp"

namespace hipress::planner {
namespace {

constexpr double kMaxExactTasks = 30e3;  // with more tasks, simulations are coarse

bool few_tasks(const Problem& problem) {
  const double nodes = problem.nodes;
  return 7 * nodes * (nodes - 1) * static_cast<double>(problem.model.gradients.size()) <=
         kMaxExactTasks;
}

/// Options with K = N, raw first; the first option if there are none. For algorithms whose factors
/// are too small for K = N, also their last option.
std::vector<std::uint16_t> whole_options(const Problem& problem, const Choices& choices,
                                         const std::vector<casync::Decision>& options) {
  const auto is_whole = [&](const casync::Decision& option) {
    return option.partitions == static_cast<std::int32_t>(problem.nodes);
  };
  std::vector<std::uint16_t> found, smaller;
  for (std::uint16_t i = 0; i < options.size(); ++i) {
    if (is_whole(options[i])) found.push_back(i);
    const std::int8_t algorithm = options[i].algorithm;
    if (!is_additive(casync::algorithm_at(choices.algorithms, algorithm))) continue;
    const auto of_it = [&](const casync::Decision& other) { return other.algorithm == algorithm; };
    const auto whole = [&](const casync::Decision& other) {
      return of_it(other) && is_whole(other);
    };
    const auto rest = options.begin() + i + 1;
    if (std::any_of(options.begin(), options.end(), whole)) continue;
    if (std::none_of(rest, options.end(), of_it)) smaller.push_back(i);
  }
  if (found.empty()) found.push_back(0);
  found.insert(found.end(), smaller.begin(), smaller.end());
  return found;
}

}  // namespace

Candidate greedy_candidate(const Problem& problem, Evaluator& evaluator, std::uint32_t scheme,
                           const std::function<bool()>& stop, std::int64_t& evaluations) {
  const Choices& choices = evaluator.choices();
  Candidate candidate = {scheme, {}};
  std::vector<std::vector<std::uint16_t>> options;
  for (const std::vector<casync::Decision>& all : choices.gradients) {
    options.push_back(whole_options(problem, choices, all));
    candidate.options.push_back(options.back().front());
  }
  const bool exact = few_tasks(problem) && evaluator.can_be_exact(candidate);
  const auto schedule = [&] {
    return exact ? evaluator.exact(candidate) : evaluator.coarse(candidate);
  };
  std::vector<std::uint32_t> order(candidate.options.size());
  std::iota(order.begin(), order.end(), 0u);
  const std::vector<models::Gradient>& gradients = problem.model.gradients;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (gradients[a].elements != gradients[b].elements) {
      return gradients[a].elements > gradients[b].elements;
    }
    return gradients[a].ready_s > gradients[b].ready_s;
  });
  PatternSimulator timeline;
  Recording base = timeline.record(schedule());
  ++evaluations;
  for (const std::uint32_t g : order) {
    const std::uint16_t before = candidate.options[g];
    std::uint16_t best = before;
    std::int64_t best_time = base.iteration;
    for (const std::uint16_t option : options[g]) {
      if (option == before) continue;
      if (stop()) break;
      candidate.options[g] = option;
      const std::int64_t time = timeline.run(schedule(), best_time - 1, &base);
      ++evaluations;
      if (time == kNever) continue;
      best = option;
      best_time = time;
    }
    candidate.options[g] = best;
    if (best != before) base = timeline.record(schedule());
  }
  return candidate;
}

SearchResult search_greedy(const Problem& problem) {
  Problem alone = problem;
  alone.grouping = Grouping::kNone;
  const Choices choices = make_choices(alone);
  Evaluator evaluator(alone, choices);
  SearchResult result;
  const std::function<bool()> stop = stop_of(*alone.machines);
  const Candidate found = greedy_candidate(
      alone, evaluator, 0, [&] { return stop && stop(); }, result.evaluations);
  result.plan = make_plan(alone, choices, found.scheme, found.options);
  result.transfer_order = choices.schemes[found.scheme].transfer_order;
  return result;
}

}  // namespace hipress::planner
