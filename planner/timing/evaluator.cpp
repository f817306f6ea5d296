#include "planner/timing/evaluator.hpp"

#include <algorithm>
#include <map>

#include "sim/folding.hpp"
#include "sim/message_sizes.hpp"

namespace hipress::planner {
namespace {

constexpr std::size_t kMaxPatternBytes = std::size_t{48} << 20;

}  // namespace

bool nodes_are_alike(const costs::Cluster& cluster) {
  return sim::difference_between_nodes(seen_by(sim::Network::kPort, cluster)).empty() &&
         !costs::slows(cluster.overlap);
}

Evaluator::Evaluator(const Problem& problem, const Choices& choices)
    : problem_(problem),
      choices_(choices),
      coarse_book_(choices.algorithms, *problem.machines),
      exact_book_(choices.algorithms, *problem.machines),
      exact_(nodes_are_alike(problem.machines->cluster)),
      order_(casync::backward_order(problem.model)),
      sent_(order_.size() * (choices.algorithms.size() + 1)) {
  const auto length = [&](casync::Kind kind, casync::Picoseconds nominal) {
    return coarse_book_.works().of({.amount = nominal.count(), .kind = kind});
  };
  compute_end_ = length(casync::Kind::kForward,
                        casync::from_seconds(models::before_backward_s(problem.model)));
  casync::Picoseconds reached{};
  std::uint32_t round = 0;
  for (const std::uint32_t gradient : order_) {
    groupable_.push_back(casync::groupable(problem.model.gradients[gradient], casync::kRaw));
    const casync::Picoseconds due = groupable_.back().ready;
    const std::int64_t work = length(casync::Kind::kBackward, due - reached);
    reached = due;
    round = work > 0 || ready_.empty() ? 0 : round + 1;
    compute_end_ += work;
    ready_.push_back(compute_end_);
    round_.push_back(round);
  }
  first_option_ = {0};
  for (const auto& options : choices.gradients) {
    first_option_.push_back(first_option_.back() + options.size());
  }
  for (const Scheme& scheme : choices.schemes) {
    pair_.push_back(casync::topologies_of(scheme.topology, scheme.raw_topology));
  }
  for (std::uint32_t scheme = 0; scheme < pair_.size(); ++scheme) {
    options_fold_.push_back(!folded_only(problem) || do_options_fold(scheme));
  }
}

bool Evaluator::has_coarse(std::uint32_t scheme) const {
  return pair_[scheme].encoded->has_coarse() && pair_[scheme].raw->has_coarse();
}

PatternGraph Evaluator::coarse(const Candidate& candidate) {
  if (!has_coarse(candidate.scheme)) return exact(candidate);
  lay_out(candidate);
  return schedule(candidate, Fidelity::kCoarse);
}

PatternGraph Evaluator::exact(const Candidate& candidate) {
  lay_out(candidate);
  const bool fold = folded_only(problem_) ||
                    std::all_of(units_.begin(), units_.end(),
                                [&](const Unit& unit) { return folds(unit, candidate.scheme); });
  return schedule(candidate, fold && problem_.nodes > 1 ? Fidelity::kFolded : Fidelity::kWhole);
}

PatternGraph Evaluator::folded(const Candidate& candidate) {
  lay_out(candidate);
  return schedule(candidate, Fidelity::kFolded);
}

bool Evaluator::folds(const Unit& unit, std::uint32_t scheme) const {
  if (!folds_at_least_bounded(unit.decision, scheme)) return false;
  const bool whole = topology_of(unit.decision, scheme)->form == casync::Topology::Form::kWhole;
  return whole || !unit.factors.empty() ||
         unit.elements % (casync::kSliceWord * unit.decision.partitions) == 0;
}

/// True if the decision's graph is foldable, at least if every slice is made as long as the first.
bool Evaluator::folds_at_least_bounded(const casync::Decision& decision,
                                       std::uint32_t scheme) const {
  const casync::Topology* topology = topology_of(decision, scheme);
  return topology->rotates &&
         (topology->form == casync::Topology::Form::kWhole ||
          decision.partitions % static_cast<std::int64_t>(problem_.nodes) == 0);
}

bool Evaluator::do_options_fold(std::uint32_t scheme) const {
  return std::ranges::all_of(choices_.gradients, [&](const auto& options) {
    return std::ranges::all_of(options, [&](const casync::Decision& decision) {
      return folds_at_least_bounded(decision, scheme);
    });
  });
}

PatternGraph Evaluator::schedule(const Candidate& candidate, Fidelity fidelity) {
  PatternGraph schedule;
  schedule.representatives = fidelity == Fidelity::kWhole ? problem_.nodes : 1;
  schedule.compute_end = compute_end_;
  schedule.transfer_order = choices_.schemes[candidate.scheme].transfer_order;
  schedule.units.reserve(units_.size());
  auto longest = static_cast<double>(compute_end_);
  // As in casync::Layout, factors' indices follow those of gradients and groups, unit by unit.
  auto factor = static_cast<std::uint32_t>(order_.size());
  for (const Unit& unit : units_) factor += unit.index >= order_.size() ? 1 : 0;
  for (const Unit& unit : units_) {
    schedule.units.push_back({.ready = ready_[unit.position],
                              .round = round_[unit.position],
                              .index = unit.index,
                              .need = unit.position,
                              .pattern = &pattern(unit, candidate.scheme, fidelity)});
    factor = schedule.units.back().take_factors(factor);
    longest += schedule.units.back().pattern->longest;
  }
  require_countable(longest);
  return schedule;
}

PatternKey Evaluator::key(std::int64_t elements, const casync::Decision& decision,
                          const Factors& factors, std::uint32_t scheme, Fidelity fidelity) const {
  const casync::Topology* topology = topology_of(decision, scheme);
  const bool whole = topology->form == casync::Topology::Form::kWhole;
  return {.elements = elements,
          .partitions = whole ? 1 : decision.partitions,
          .algorithm = decision.algorithm,
          .topology = topology,
          .fidelity = fidelity,
          .factors = factors};
}

const Pattern& Evaluator::pattern(const Unit& unit, std::uint32_t scheme, Fidelity fidelity) {
  if (unit.index < order_.size()) {
    return pattern_of_gradient(unit.index, candidate_->options[unit.index], scheme, fidelity);
  }
  return book(fidelity).find(key(unit.elements, unit.decision, unit.factors, scheme, fidelity));
}

const Pattern& Evaluator::pattern_of_gradient(std::uint32_t g, std::uint16_t option,
                                              std::uint32_t scheme, Fidelity fidelity) {
  const casync::Decision& decision = choices_.gradients[g][option];
  std::vector<const Pattern*>& known = singles_[{topology_of(decision, scheme), fidelity}];
  if (known.empty()) known.resize(first_option_.back(), nullptr);
  const Pattern*& entry = known[first_option_[g] + option];
  if (!entry) {
    entry = &book(fidelity).find(key(problem_.model.gradients[g].elements, decision,
                                     sent(g, decision.algorithm).factors, scheme, fidelity));
  }
  return *entry;
}

Evaluator::Load Evaluator::load(std::uint32_t scheme, std::size_t gradient, std::uint16_t option) {
  const bool coarse = has_coarse(scheme);
  const double nodes = coarse ? 1 : problem_.nodes;  // number of nodes in the pattern
  const Pattern& pattern = pattern_of_gradient(static_cast<std::uint32_t>(gradient), option, scheme,
                                               coarse ? Fidelity::kCoarse : Fidelity::kWhole);
  return {static_cast<double>(pattern.codec_work) / nodes,
          static_cast<double>(pattern.port_work) / nodes};
}

void Evaluator::trim() {
  if (!exact_book_.trim(kMaxPatternBytes)) return;
  std::erase_if(singles_, [](const auto& row) { return row.first.second != Fidelity::kCoarse; });
}

const Evaluator::Sent& Evaluator::sent(std::uint32_t g, std::int8_t algorithm) {
  const std::size_t forms = choices_.algorithms.size() + 1;
  std::optional<Sent>& known = sent_[g * forms + static_cast<std::size_t>(algorithm + 1)];
  if (!known) {
    const casync::Algorithm* const what = casync::algorithm_at(choices_.algorithms, algorithm);
    const models::Gradient& gradient = problem_.model.gradients[g];
    known = {factors_of(what, gradient), casync::groupable(gradient, algorithm, what).bytes};
  }
  return *known;
}

void Evaluator::lay_out(const Candidate& candidate) {
  candidate_ = &candidate;
  units_.clear();
  if (choices_.schemes[candidate.scheme].bulk.threshold_bytes > 0) {
    group(candidate);
  } else {
    for (std::uint32_t place = 0; place < order_.size(); ++place) {
      const std::uint32_t g = order_[place];
      const casync::Decision& decision = choices_.gradients[g][candidate.options[g]];
      units_.push_back({place, g, problem_.model.gradients[g].elements, decision,
                        sent(g, decision.algorithm).factors});
    }
  }
}

/// Makes the same units as casync::make_layout(), without names.
void Evaluator::group(const Candidate& candidate) {
  const auto decision = [&](std::uint32_t place) -> const casync::Decision& {
    return choices_.gradients[order_[place]][candidate.options[order_[place]]];
  };
  for (std::uint32_t place = 0; place < order_.size(); ++place) {
    const std::int8_t algorithm = decision(place).algorithm;
    groupable_[place].algorithm = algorithm;
    groupable_[place].bytes = sent(order_[place], algorithm).bytes;
  }
  const std::vector<std::uint32_t> last =
      casync::bulk_groups(choices_.schemes[candidate.scheme].bulk, groupable_);
  /// Members so far of the group whose last member has this place.
  struct Members {
    std::uint32_t count = 0;
    std::int64_t elements = 0;
    Factors factors = {};
  };
  std::vector<Members> ending(order_.size());
  auto index = static_cast<std::uint32_t>(order_.size());
  for (std::uint32_t place = 0; place < order_.size(); ++place) {
    Members& members = ending[last[place]];
    ++members.count;
    members.elements += problem_.model.gradients[order_[place]].elements;
    join(members.factors, sent(order_[place], decision(place).algorithm).factors);
    if (last[place] != place) continue;
    if (members.count == 1) {
      units_.push_back(
          {place, order_[place], members.elements, decision(place), std::move(members.factors)});
      continue;
    }
    units_.push_back({place,
                      index++,
                      members.factors.empty()
                          ? casync::group_elements(members.elements, problem_.nodes)
                          : members.elements,
                      {decision(place).algorithm, static_cast<std::int32_t>(problem_.nodes)},
                      std::move(members.factors)});
  }
}

std::int64_t folded_iteration(const models::Model& model, const casync::Plan& plan,
                              const Machines& machines, sim::TransferOrder order) {
  const Problem problem = {.model = model,
                           .topology = plan.topology,
                           .nodes = plan.nodes,
                           .algorithms = {},
                           .machines = &machines};
  Choices only = {.algorithms = plan.algorithms,
                  .gradients = {},
                  .schemes = {{.topology = plan.topology,
                               .raw_topology = plan.raw_topology,
                               .bulk = plan.bulk,
                               .transfer_order = order}}};
  sim::predict_sizes(machines.profile, only.algorithms);
  for (const casync::Decision& decision : plan.decisions) only.gradients.push_back({decision});
  const Candidate candidate = {0, std::vector<std::uint16_t>(plan.decisions.size(), 0)};
  Evaluator evaluator(problem, only);
  evaluator.set_stop(stop_of(machines));
  return PatternSimulator(stop_of(machines)).run(evaluator.folded(candidate));
}

}  // namespace hipress::planner
