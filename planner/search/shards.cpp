#include "planner/search/shards.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "casync/layout.hpp"
#include "costs/fabric.hpp"
#include "costs/levels.hpp"
#include "kernels/codec/codec.hpp"
#include "planner/bound/shard_bound.hpp"
#include "planner/problem/budget.hpp"
#include "planner/problem/levels.hpp"
#include "planner/problem/state_memory.hpp"
#include "planner/timing/evaluation.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

/// Forms in which a layer is gathered and reduced: indices into the plan's algorithms.
struct Forms {
  std::int8_t gather = casync::kRaw;
  std::int8_t reduce = casync::kRaw;
};

/// True if a reduction exchanges messages, as those with codecs other than casts do.
bool exchanges_any(const casync::Plan& plan) {
  return std::ranges::any_of(plan.decisions, [&](const casync::Decision& decision) {
    const casync::Algorithm* const algorithm =
        casync::algorithm_at(plan.algorithms, decision.algorithm);
    return algorithm != nullptr && !algorithm->half_precision;
  });
}

class ShardSearch {
 public:
  explicit ShardSearch(const Problem& problem)
      : problem_(problem),
        table_(problem.schedule.timetable(problem.model)),
        budget_(problem.limits) {
    plan_.topology = "allreduce";  // a library's collectives
    plan_.nodes = problem.nodes;
    plan_.decisions.resize(problem.model.gradients.size());
    plan_.gathers.assign(problem.model.gradients.size(), casync::kRaw);
    plan_.schedule = problem.schedule;
    plan_.shards_by = problem.shards_by;
    send_as_stored(problem.model, plan_);
    for (std::uint32_t layer = 0; layer < table_.synchronisations.size(); ++layer) {
      raw_.push_back(forms_of(layer));
    }
    time_s_ = time_of(plan_);
    list_algorithms();
  }

  SearchResult run() {
    const std::vector<std::uint32_t> within_hosts = exchanges();
    const double bound_s = plan_.shards_in_messages()
                               ? 0
                               : shard_bound(problem_, plan_, gathers_, reductions_, within_hosts);
    for (const std::uint32_t within : within_hosts) try_all_alike(within);
    const double limit_s = time_s_ * (1 + problem_.tolerance);
    for (std::uint32_t layer = 0; layer < table_.synchronisations.size(); ++layer) {
      give_up_less(layer, limit_s);
    }
    std::vector<std::string> diagnostics;
    if (plan_.exchange_within > 1 && exchanges_any(plan_)) {
      diagnostics.push_back(
          costs::describe_exchange(table_.sharding->shards(plan_.nodes), plan_.exchange_within));
    }
    return {.plan = std::move(plan_),
            .diagnostics = std::move(diagnostics),
            .evaluations = budget_.used(),
            .complete = !budget_.interrupted(),
            .lower_bound_s = bound_s};
  }

 private:
  bool has_time() const { return !budget_.interrupted() && budget_.share() < 1; }

  /// Simulated time of a step; infinity if no time is left.
  double step_s(const casync::Plan& plan) {
    budget_.count(1);
    try {
      return simulated_iteration_s(problem_.model, plan, *problem_.machines);
    } catch (const sim::Stopped&) {
      return std::numeric_limits<double>::infinity();
    }
  }

  /// Time of a step, if the plan fits into the memory of a GPU; infinity otherwise.
  double time_of(const casync::Plan& plan) {
    return fits(problem_, plan) ? step_s(plan) : std::numeric_limits<double>::infinity();
  }

  /// Lists the problem's algorithms that may be used in gathers, and in reductions.
  void list_algorithms() {
    for (const std::string& name : problem_.algorithms) {
      if (!may_reduce(name)) continue;
      const std::int8_t place = place_in(plan_.algorithms, name);
      reductions_.push_back(place);
      if (may_gather(problem_, name)) gathers_.push_back(place);
    }
  }

  /// Sizes of the groups within which shards are exchanged first: 1, and the nodes of a host.
  std::vector<std::uint32_t> exchanges() const {
    const costs::Cluster& cluster = problem_.machines->cluster;
    const std::uint32_t each = costs::nodes_per_host(cluster);
    const std::uint32_t shards = table_.sharding->shards(problem_.nodes);
    const bool of_hosts = cluster.host_link && each > 1 && each < shards && shards % each == 0;
    if (!of_hosts) return {1u};
    // A size must be faster than those before it by more than the tolerance to be taken. With
    // several rails, an exchange among all GPUs, which sends more bytes between hosts, comes last.
    return costs::rails(cluster) > 1 ? std::vector{each, 1u} : std::vector{1u, each};
  }

  void set(casync::Plan& plan, std::uint32_t layer, Forms forms) const {
    if (forms.gather == casync::kRaw) forms.gather = raw_[layer].gather;
    if (forms.reduce == casync::kRaw) forms.reduce = raw_[layer].reduce;
    for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
      if (table_.part_of[g] != layer) continue;
      plan.decisions[g].algorithm = forms.reduce;
      plan.gathers[g] = forms.gather;
    }
  }

  void try_all_alike(std::uint32_t within) {
    std::vector<std::int8_t> gathers = {casync::kRaw}, reductions = {casync::kRaw};
    gathers.insert(gathers.end(), gathers_.begin(), gathers_.end());
    reductions.insert(reductions.end(), reductions_.begin(), reductions_.end());
    for (const std::int8_t gather : gathers) {
      for (const std::int8_t reduce : reductions) {
        if (!has_time()) return;
        casync::Plan changed = plan_;
        changed.exchange_within = within;
        for (std::uint32_t layer = 0; layer < table_.synchronisations.size(); ++layer) {
          set(changed, layer, {gather, reduce});
        }
        const double time_s = time_of(changed);
        if (time_s * (1 + problem_.tolerance) >= time_s_) continue;
        plan_ = std::move(changed);
        time_s_ = time_s;
      }
    }
  }

  /// Makes the layer's gather, its reduction or both raw, if the step then stays within `limit_s`.
  void give_up_less(std::uint32_t layer, double limit_s) {
    Forms now = forms_of(layer);
    if (now.gather == raw_[layer].gather) now.gather = casync::kRaw;
    if (now.reduce == raw_[layer].reduce) now.reduce = casync::kRaw;
    for (const Forms& less : {Forms{}, Forms{.gather = now.gather}, Forms{.reduce = now.reduce}}) {
      const bool same = less.gather == now.gather && less.reduce == now.reduce;
      if (same || !has_time()) return;
      casync::Plan changed = plan_;
      set(changed, layer, less);
      if (time_of(changed) > limit_s) continue;
      plan_ = std::move(changed);
      return;
    }
  }

  Forms forms_of(std::uint32_t layer) const {
    const auto first = std::ranges::find(table_.part_of, layer) - table_.part_of.begin();
    return {plan_.gathers[static_cast<std::size_t>(first)],
            plan_.decisions[static_cast<std::size_t>(first)].algorithm};
  }

  const Problem& problem_;
  casync::Timetable table_;
  Budget budget_;
  casync::Plan plan_;
  double time_s_ = 0;
  std::vector<Forms> raw_;  // by layer: its uncompressed forms
  std::vector<std::int8_t> gathers_, reductions_;
};

/// Reason why the groups of shards, or those of one shard's replicas, differ; empty: all are alike.
std::string refusal_of_groups(const Problem& gpus, const casync::Sharding& sharding) {
  const std::uint32_t shards = sharding.shards(gpus.nodes);
  const std::array<std::pair<std::uint32_t, std::uint32_t>, 3> groups = {
      {{shards, 1}, {sharding.gathers_among(gpus.nodes), 1}, {gpus.nodes / shards, shards}}};
  for (const auto& [nodes, stride] : groups) {
    std::string why = costs::unlike_groups(gpus.machines->cluster, nodes, stride);
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace

bool may_gather(const Problem& problem, const std::string& algorithm) {
  const bool in_blocks = kernels::parameter_value(algorithm, "block").has_value();
  const bool half = kernels::make_codec(algorithm)->traits().half_precision;
  return in_blocks || half || problem.accuracy.coarseness(algorithm) == 0;
}

bool may_reduce(const std::string& algorithm) {
  const kernels::CodecTraits traits = kernels::make_codec(algorithm)->traits();
  return traits.stages == 1 && !traits.additive && !traits.own_optimizer;
}

void send_as_stored(const models::Model& model, casync::Plan& plan) {
  if (!plan.shards_in_messages()) return;
  const std::vector<std::uint32_t> layer_of = plan.schedule.timetable(model).part_of;
  // By layer: name of the cast to its dtype; empty for fp32, or for several dtypes.
  std::map<std::uint32_t, std::string> casts;
  for (std::size_t g = 0; g < layer_of.size(); ++g) {
    const std::string cast(plans::cast_of(model.gradients[g].dtype));
    const auto [place, is_first] = casts.try_emplace(layer_of[g], cast);
    if (!is_first && place->second != cast) place->second.clear();
  }
  plan.gathers.resize(plan.decisions.size(), casync::kRaw);
  for (std::size_t g = 0; g < layer_of.size(); ++g) {
    const std::string& cast = casts[layer_of[g]];
    if (cast.empty()) continue;
    for (std::int8_t* const form : {&plan.gathers[g], &plan.decisions[g].algorithm}) {
      if (*form == casync::kRaw) *form = place_in(plan.algorithms, cast);
    }
  }
}

std::string exchange_within_hosts(const models::Model& model, const costs::Cluster& cluster,
                                  casync::Plan& plan) {
  const std::uint32_t each = costs::rails(cluster);
  if (each == 1 || plan.exchange_within > 1 || !plan.schedule.row().sharded) return {};
  const std::uint32_t shards = plan.schedule.timetable(model).sharding->shards(plan.nodes);
  if (!exchanges_any(plan) || each >= shards || shards % each != 0) return {};
  plan.exchange_within = each;
  return costs::describe_exchange(shards, each);
}

std::string refusal_of_nodes(const Problem& problem, const casync::Schedule& schedule) {
  if (kind_of(schedule) != JobKind::kSharding) return {};
  try {
    const GpuProblem gpus(problem);
    casync::Plan plan{
        .topology = "allreduce", .nodes = gpus.problem().nodes, .algorithms = {}, .decisions = {}};
    plan.decisions.resize(problem.model.gradients.size());
    plan.schedule = schedule;
    const casync::Layout layout = casync::make_layout(problem.model, plan);
    return refusal_of_groups(gpus.problem(), *layout.timetable.sharding);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

std::vector<casync::Plan> other_shards(const Problem& problem, const casync::Plan& plan,
                                       std::uint32_t gradient) {
  casync::Plan base = plan;
  base.gathers.resize(plan.decisions.size(), casync::kRaw);
  std::vector<std::int8_t> gathers = {casync::kRaw}, reductions = {casync::kRaw};
  for (const std::string& name : problem.algorithms) {
    if (!may_reduce(name)) continue;
    reductions.push_back(place_in(base.algorithms, name));
    if (may_gather(problem, name)) gathers.push_back(reductions.back());
  }
  const std::vector<std::uint32_t> layer_of = plan.schedule.timetable(problem.model).part_of;
  std::vector<casync::Plan> others;
  for (const std::int8_t gather : gathers) {
    for (const std::int8_t reduce : reductions) {
      const bool same =
          gather == base.gathers[gradient] && reduce == base.decisions[gradient].algorithm;
      if (same) continue;
      casync::Plan& made = others.emplace_back(base);
      for (std::size_t g = 0; g < layer_of.size(); ++g) {
        if (layer_of[g] != layer_of[gradient]) continue;
        made.gathers[g] = gather;
        made.decisions[g].algorithm = reduce;
      }
      send_as_stored(problem.model, made);
    }
  }
  return others;
}

SearchResult search_shards(const Problem& problem) { return ShardSearch(problem).run(); }

}  // namespace hipress::planner
