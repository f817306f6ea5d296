#include "planner/search/exhaustive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "planner/bound/bound.hpp"
#include "planner/bound/relaxation.hpp"
#include "planner/bound/work_maker.hpp"
#include "planner/search/prefix_search.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

constexpr int kRounds = 8;  // of the linear program; there are many, and each is much like the last
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

/// Simulates plans on the network asked for.
class Simulations {
 public:
  Simulations(const Problem& problem, const Choices& choices)
      : problem_(problem), choices_(choices), evaluator_(problem, choices) {}

  /// Picoseconds, or anything from `limit` on for a plan that takes no less.
  std::int64_t iteration(const Candidate& candidate, std::int64_t limit) {
    ++count_;
    if (timed_by_units(candidate)) {
      if (count_ % kTrimEvery == 0 && !base_) evaluator_.trim();
      return timeline_.run(evaluator_.exact(candidate), limit, base_ ? &*base_ : nullptr);
    }
    const casync::Plan plan = make_plan(problem_, choices_, candidate.scheme, candidate.options);
    const sim::TaskCosts costs(problem_.machines->profile, plan.algorithms);
    return sim::simulate(casync::expand(problem_.model, plan), costs, problem_.machines->cluster,
                         {.network = problem_.machines->network,
                          .transfer_order = choices_.schemes[candidate.scheme].transfer_order})
        .iteration.count();
  }
  /// Plans like this one will be simulated, which is faster then.
  void expect_like(const Candidate& candidate) {
    base_.reset();
    if (!timed_by_units(candidate)) return;
    evaluator_.trim();
    base_ = timeline_.record(evaluator_.exact(candidate));
  }
  std::int64_t count() const { return count_; }

  /// Candidate::options is not asked.
  bool timed_by_units(const Candidate& candidate) const {
    return problem_.machines->network == sim::Network::kPort &&
           evaluator_.can_be_exact(candidate) && !folded_only(problem_);
  }

 private:
  static constexpr std::int64_t kTrimEvery = 4096;
  const Problem& problem_;
  const Choices& choices_;
  Evaluator evaluator_;
  PatternSimulator timeline_;
  std::optional<Recording> base_;
  std::int64_t count_ = 0;
};

class BranchAndBound {
 public:
  BranchAndBound(const Problem& problem, const Choices& choices)
      : problem_(problem),
        choices_(choices),
        ready_(ready_times(problem.model, problem.machines->cluster)),
        simulations_(problem, choices) {}

  Optimum take() {
    start();
    for (std::uint32_t scheme = 0; scheme < choices_.schemes.size(); ++scheme) {
      std::vector<std::vector<OptionWork>> work = least_work(
          problem_.model, *problem_.machines, choices_, choices_.schemes[scheme], ready_);
      if (has_prefixes(scheme)) {
        search_prefixes(scheme, work);
      } else {
        search_program(scheme, std::move(work));
      }
    }
    return {.candidate = best_,
            .iteration_s = casync::to_seconds(casync::Picoseconds(best_time_)),
            .simulated = simulations_.count() + simulated_,
            .bounded = bounded_,
            .proven = proven_};
  }

 private:
  /// A good plan to begin with: what the bound suggests, improved gradient by gradient.
  void start() {
    const Bound bound = lower_bound(problem_.model, *problem_.machines, choices_);
    for (std::uint32_t scheme = 0; scheme < choices_.schemes.size(); ++scheme) {
      try_plan({scheme, bound.options});
      if (is_interrupted(problem_.limits)) return;
    }
    for (bool better = true; better;) {
      better = false;
      for (std::size_t g = 0; g < choices_.gradients.size(); ++g) {
        for (std::uint16_t option = 0; option < choices_.gradients[g].size(); ++option) {
          if (is_interrupted(problem_.limits)) return;
          Candidate other = best_;
          other.options[g] = option;
          if (other.options != best_.options) better = try_plan(other) || better;
        }
      }
    }
  }

  bool try_plan(const Candidate& candidate) {
    const std::int64_t time = simulations_.iteration(candidate, best_time_ - 1);
    if (time >= best_time_) return false;
    best_time_ = time;
    best_ = candidate;
    simulations_.expect_like(best_);
    return true;
  }

  /// What a plan's first gradients do does not depend on the others, but where a library carries
  /// factors: its all-reduces of later ones wait for those of the gradients that follow.
  bool has_prefixes(std::uint32_t scheme) const {
    const Scheme& plans = choices_.schemes[scheme];
    const casync::Topology& raw = *casync::topologies_of(plans.topology, plans.raw_topology).raw;
    return simulations_.timed_by_units({scheme, {}}) && plans.bulk.threshold_bytes == 0 &&
           !(raw.form == casync::Topology::Form::kWhole && has_factors());
  }

  bool has_factors() const {
    return std::ranges::any_of(choices_.gradients, [&](const auto& options) {
      return std::ranges::any_of(options, [&](const casync::Decision& decision) {
        return is_additive(casync::algorithm_at(choices_.algorithms, decision.algorithm));
      });
    });
  }

  void search_prefixes(std::uint32_t scheme, const std::vector<std::vector<OptionWork>>& work) {
    Evaluator evaluator(problem_, choices_);
    PrefixSearch prefixes(evaluator, scheme, ready_, work);
    prefixes.improve(best_, best_time_, problem_.limits);
    proven_ = proven_ && prefixes.complete();
    simulated_ += prefixes.simulated();
    bounded_ += prefixes.bounded();
  }

  void search_program(std::uint32_t scheme, std::vector<std::vector<OptionWork>> work) {
    scheme_ = scheme;
    Relaxation relaxation(ready_, *problem_.machines, std::move(work));
    relaxation_ = &relaxation;
    order_by_size();
    visit(0, relaxation.all());
  }

  /// What matters most is decided first.
  void order_by_size() {
    places_.resize(ready_.order.size());
    std::iota(places_.begin(), places_.end(), std::size_t{0});
    std::stable_sort(places_.begin(), places_.end(), [&](std::size_t a, std::size_t b) {
      return problem_.model.gradients[ready_.order[a]].elements >
             problem_.model.gradients[ready_.order[b]].elements;
    });
  }

  /// Searches what `allowed` leaves, where the first `depth` gradients of places_ are decided. One
  /// plan is simulated sooner than bounded.
  void visit(std::size_t depth, const Allowed& allowed) {
    if (is_interrupted(problem_.limits)) {
      proven_ = false;
      return;
    }
    if (depth == places_.size()) {
      try_plan(plan_of(allowed));
      return;
    }
    ++bounded_;
    const Relaxation::Verdict verdict =
        relaxation_->test(static_cast<double>(best_time_ - 1), allowed, kRounds);
    if (verdict.refuted) return;
    const std::size_t place = places_[depth];
    for (const std::uint16_t option : best_first(allowed[place], verdict.mixture, place)) {
      Allowed part = allowed;
      part[place] = {option};
      visit(depth + 1, part);
    }
  }

  static std::vector<std::uint16_t> best_first(std::vector<std::uint16_t> options,
                                               const Mixture& mixture, std::size_t place) {
    const auto weight = [&](std::uint16_t option) {
      for (const Mixture::Share& share : mixture.gradients[place]) {
        if (share.option == option) return share.weight;
      }
      return 0.0;
    };
    std::stable_sort(options.begin(), options.end(),
                     [&](std::uint16_t a, std::uint16_t b) { return weight(a) > weight(b); });
    return options;
  }

  Candidate plan_of(const Allowed& allowed) const {
    Candidate candidate = {scheme_, std::vector<std::uint16_t>(allowed.size())};
    for (std::size_t place = 0; place < allowed.size(); ++place) {
      candidate.options[ready_.order[place]] =
          relaxation_->work(place)[allowed[place].front()].option;
    }
    return candidate;
  }

  const Problem& problem_;
  const Choices& choices_;
  const ReadyTimes ready_;
  Simulations simulations_;
  Relaxation* relaxation_ = nullptr;  // of the scheme at hand
  std::uint32_t scheme_ = 0;
  std::vector<std::size_t> places_;  // in the order of decision
  Candidate best_;
  std::int64_t best_time_ = kLatest;
  std::int64_t simulated_ = 0;  // from prefixes
  std::int64_t bounded_ = 0;
  bool proven_ = true;
};

/// Refuses what would take too long. One plan tells how long simulating each would take.
void require_few(const Problem& problem, const Choices& choices) {
  const double plans = count_plans(choices);
  if (plans <= kMaxPlans) return;
  const auto begin = std::chrono::steady_clock::now();
  Simulations(problem, choices)
      .iteration({0, std::vector<std::uint16_t>(choices.gradients.size(), 0)}, kLatest);
  const double one_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  constexpr double kYear_s = 365.25 * 24 * 3600;
  throw io::InputError(fmt::format(
      "`search` exhaustive is for at most {:.2g} plans; these {} gradients have {:.2g}. "
      "To simulate each, at {:.2g} s, would take {:.2g} years, and nobody knows "
      "beforehand how much of that bounds spare: take `search` timeline, or fewer "
      "algorithms or gradients",
      kMaxPlans, choices.gradients.size(), plans, one_s, plans * one_s / kYear_s));
}

}  // namespace

double count_plans(const Choices& choices) {
  auto count = static_cast<double>(choices.schemes.size());
  for (const auto& options : choices.gradients) count *= static_cast<double>(options.size());
  return count;
}

Choices exhaustive_choices(const Problem& problem) {
  Problem plain = problem;
  plain.grouping = Grouping::kNone;
  Choices choices = make_choices(plain);
  const auto nodes = static_cast<std::int32_t>(problem.nodes);
  for (std::size_t g = 0; g < choices.gradients.size(); ++g) {
    const bool fills = problem.model.gradients[g].elements / nodes >= casync::kSliceWord;
    std::vector<casync::Decision> kept;
    for (const casync::Decision& decision : choices.gradients[g]) {
      if (decision.partitions == 1 || (decision.partitions == nodes && fills)) {
        kept.push_back(decision);
      }
    }
    if (!kept.empty()) choices.gradients[g] = std::move(kept);
  }
  return choices;
}

Optimum find_optimum(const Problem& problem, const Choices& choices) {
  if (problem.machines == nullptr) {
    throw std::invalid_argument("search exhaustive needs machines to simulate plans on");
  }
  require_few(problem, choices);
  return BranchAndBound(problem, choices).take();
}

SearchResult search_exhaustive(const Problem& problem) {
  const Choices choices = exhaustive_choices(problem);
  if (const casync::Topology* const unknown = topology_without_bound(choices)) {
    throw io::InputError(
        fmt::format("topology {} says nothing of what it costs at the least, so search exhaustive "
                    "cannot rule plans out: take `search` timeline",
                    unknown->name));
  }
  const Optimum optimum = find_optimum(problem, choices);
  SearchResult result;
  result.plan = make_plan(problem, choices, optimum.candidate.scheme, optimum.candidate.options);
  result.evaluations = optimum.simulated;
  result.transfer_order = choices.schemes[optimum.candidate.scheme].transfer_order;
  result.complete = result.proven = optimum.proven;
  const std::string counts =
      fmt::format("{} simulated, {} parts bounded", optimum.simulated, optimum.bounded);
  const std::string plans = fmt::format(
      "{:.3g} plans (each gradient raw or compressed, K = 1 or N)", count_plans(choices));
  result.diagnostics.push_back(
      optimum.proven
          ? fmt::format("the best of {}: {}", plans, counts)
          : fmt::format("not proved to be the best of {}: interrupted after {}", plans, counts));
  return result;
}

}  // namespace hipress::planner
