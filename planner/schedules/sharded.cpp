#include "planner/schedules/sharded.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "casync/layout.hpp"
#include "costs/levels.hpp"
#include "kernels/codec/codec.hpp"
#include "planner/problem/budget.hpp"
#include "planner/schedules/scenario.hpp"
#include "planner/schedules/sharded_bound.hpp"
#include "plans/plan_builder.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {
namespace {

/// What a layer is sent as: indices into the plan's algorithms.
struct Forms {
  std::int8_t gather = casync::kRaw;
  std::int8_t reduce = casync::kRaw;
};

/// Of an algorithm in the plan, which has it then.
std::int8_t place_of(const std::string& name, casync::Plan& plan) {
  const auto found = std::ranges::find(plan.algorithms, name, &casync::Algorithm::name);
  if (found != plan.algorithms.end()) {
    return static_cast<std::int8_t>(found - plan.algorithms.begin());
  }
  const std::int8_t place = plans::next_place(plan.algorithms, name);
  plan.algorithms.push_back(algorithm(name));
  return place;
}

class ShardSearch {
 public:
  ShardSearch(const Problem& problem, const casync::Schedule& schedule,
              const std::string& shards_by)
      : problem_(problem), table_(schedule.timetable(problem.model)), budget_(problem.limits) {
    plan_.strategy = "allreduce";  // a library's collectives
    plan_.nodes = problem.nodes;
    plan_.decisions.resize(problem.model.gradients.size());
    plan_.gathers.assign(problem.model.gradients.size(), casync::kRaw);
    plan_.schedule = schedule;
    plan_.shards_by = shards_by;
    send_as_stored(problem.model, plan_);
    for (std::uint32_t layer = 0; layer < table_.synchronisations.size(); ++layer) {
      raw_.push_back(forms_of(layer));
    }
    time_s_ = step_s(plan_);
    list_algorithms();
  }

  ShardedPlan run() {
    const std::vector<std::uint32_t> within_hosts = exchanges();
    const double bound_s = plan_.shards_in_messages()
                               ? 0
                               : shard_bound(problem_, plan_, gathers_, reductions_, within_hosts);
    for (const std::uint32_t within : within_hosts) try_all_alike(within);
    const double limit_s = time_s_ * (1 + problem_.tolerance);
    for (std::uint32_t layer = 0; layer < table_.synchronisations.size(); ++layer) {
      give_up_less(layer, limit_s);
    }
    return {std::move(plan_), bound_s};
  }

 private:
  bool has_time() const { return !budget_.interrupted() && budget_.share() < 1; }

  double step_s(const casync::Plan& plan) {
    budget_.count(1);
    const sim::Scenario scenario = scenario_of(problem_, plan);
    return casync::to_seconds(
        sim::iteration_time(scenario, sim::expand(scenario, sim::Fold::kExactly).graph));
  }

  /// The problem's algorithms, by what they can be for.
  void list_algorithms() {
    for (const std::string& name : problem_.algorithms) {
      if (!may_reduce(name)) continue;
      const std::int8_t place = place_of(name, plan_);
      reductions_.push_back(place);
      if (may_gather(problem_, name)) gathers_.push_back(place);
    }
  }

  /// Neighbours that exchange shards first: all at once, or those of a host.
  std::vector<std::uint32_t> exchanges() const {
    const costs::Cluster& cluster = problem_.machines->cluster;
    const std::uint32_t each = costs::nodes_per_host(cluster);
    const std::uint32_t shards = table_.sharding->shards(problem_.nodes);
    const bool of_hosts = cluster.host_link && each > 1 && each < shards && shards % each == 0;
    return of_hosts ? std::vector{1u, each} : std::vector{1u};
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
        const double time_s = step_s(changed);
        if (time_s * (1 + problem_.tolerance) >= time_s_) continue;
        plan_ = std::move(changed);
        time_s_ = time_s;
      }
    }
  }

  /// A layer goes raw where the step then takes no longer than that.
  void give_up_less(std::uint32_t layer, double limit_s) {
    Forms now = forms_of(layer);
    if (now.gather == raw_[layer].gather) now.gather = casync::kRaw;
    if (now.reduce == raw_[layer].reduce) now.reduce = casync::kRaw;
    for (const Forms& less : {Forms{}, Forms{.gather = now.gather}, Forms{.reduce = now.reduce}}) {
      const bool same = less.gather == now.gather && less.reduce == now.reduce;
      if (same || !has_time()) return;
      casync::Plan changed = plan_;
      set(changed, layer, less);
      if (step_s(changed) > limit_s) continue;
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
  std::vector<Forms> raw_;  // per layer, what it is sent as without compression
  std::vector<std::int8_t> gathers_, reductions_;
};

/// Why the groups of neighbours, or those of their replicas, are not alike; empty: they are.
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

Coarseness coarseness_of_shards(const Problem& problem, const casync::Plan& plan) {
  const int encodings = plan.exchange_within > 1 ? 2 : 1;
  Coarseness most;
  for (std::uint32_t g = 0; g < plan.decisions.size(); ++g) {
    const models::Gradient& gradient = problem.model.gradients[g];
    const std::int8_t gather = plan.gather_of(g);
    if (!plans::is_raw(gradient, plan, {.algorithm = gather})) {
      const auto place = static_cast<std::size_t>(gather);
      most = std::max(most, problem.accuracy.given_up(plan.algorithms[place].name));
    }
    if (plans::is_raw(gradient, plan, plan.decisions[g])) continue;
    const auto place = static_cast<std::size_t>(plan.decisions[g].algorithm);
    most = std::max(most, problem.accuracy.given_up(plan.algorithms[place].name, encodings));
  }
  return most;
}

void send_as_stored(const models::Model& model, casync::Plan& plan) {
  if (!plan.shards_in_messages()) return;
  const std::vector<std::uint32_t> layer_of = plan.schedule.timetable(model).part_of;
  std::map<std::uint32_t, std::string> casts;  // per layer; empty: of several types, or of fp32
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
      if (*form == casync::kRaw) *form = place_of(cast, plan);
    }
  }
}

std::string refusal_of_nodes(const Problem& problem, const casync::Schedule& schedule) {
  if (!schedule.is_sharded()) return {};
  try {
    casync::Plan plan{.strategy = "allreduce",
                      .nodes = GpuProblem(problem).problem().nodes,
                      .algorithms = {},
                      .decisions = {}};
    plan.decisions.resize(problem.model.gradients.size());
    plan.schedule = schedule;
    const casync::Layout layout = casync::make_layout(problem.model, plan);
    return refusal_of_groups(GpuProblem(problem).problem(), *layout.timetable.sharding);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

GpuProblem::GpuProblem(const Problem& problem)
    : machines_(at_level(*problem.machines, costs::of_gpus(problem.machines->cluster))),
      problem_(problem) {
  problem_.machines = &machines_;
  problem_.nodes = machines_.cluster.nodes;
}

ShardedPlan plan_shards(const Problem& problem, const casync::Schedule& schedule,
                        const std::string& shards_by) {
  return ShardSearch(problem, schedule, shards_by).run();
}

}  // namespace hipress::planner
