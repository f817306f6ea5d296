#include "sweep/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "costs/levels.hpp"
#include "io/error.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "plans/plan_yaml.hpp"
#include "sim/parallel.hpp"

namespace hipress::sweep {
namespace {

constexpr std::string_view kDdpName = "ddp";

}  // namespace

SweepPlans::SweepPlans(const SweepInputs& inputs, const std::vector<Wanted>& wanted,
                       const Planning& planning)
    : inputs_(inputs), names_(planning.names), make_(planning.make) {
  for (const auto& [index, role] : wanted) {
    const Point at = point(inputs_.spec, index);
    if (const planner::NamedPlanRow* name = planned_name(at, role)) {
      if (role == Role::kPoint) require_own_partitions(at);
      made_.try_emplace(plan_key(at, *name), Made{.point = at, .plan = {}, .complaint = {}});
    }
  }
  std::vector<std::pair<const PlanKey, Made>*> queue;
  for (auto& entry : made_) queue.push_back(&entry);
  std::mutex mutex;
  std::int64_t done = 0;
  sim::run_parallel(queue.size(), planning.jobs, [&](std::size_t i, unsigned) {
    make(queue[i]->first, planning, queue[i]->second);
    const std::lock_guard lock(mutex);
    if (planning.progress) planning.progress(++done, static_cast<std::int64_t>(queue.size()));
  });
}

const planner::NamedPlanRow* SweepPlans::planned_name(const Point& point, Role role) const {
  if (role == Role::kUncompressed) return nullptr;
  const std::string_view asked = role == Role::kDdp ? kDdpName : value(point, kPlan).text;
  const auto row = std::ranges::find(names_, asked, &planner::NamedPlanRow::name);
  return row == names_.end() ? nullptr : &*row;
}

SweepPlans::PlanKey SweepPlans::plan_key(const Point& point,
                                         const planner::NamedPlanRow& name) const {
  PlanKey key{
      {point[kModel], point[kComputeTime], point[kTopology], point[kNodes], point[kGpusPerNode]},
      name.name};
  if (name.name != kDdpName) {
    for (const Axis axis : {kAlgorithm, kRank, kRatio}) key.values.push_back(point[axis]);
  }
  const std::size_t axes = name.depends_on_machines ? kAxes : kGraphAxes;
  for (std::size_t axis = kGraphAxes; axis < axes; ++axis) key.values.push_back(point[axis]);
  return key;
}

void SweepPlans::require_own_partitions(const Point& point) const {
  if (!value(point, kPartitions).number) return;
  inputs_.spec.fail(
      kPlan, value(point, kPlan),
      "is made with partitions of its own: leave out axis partitions, or give it the value "
      "'plan' alone");
}

std::optional<plans::ResolvedPlan> SweepPlans::make_anew(const PlanKey& key,
                                                         const Planning& planning,
                                                         const Point& point) const {
  // All cores may plan concurrently, so each gets its share of the memory.
  const planner::Machines machines{
      .profile = inputs_.profile(point),
      .cluster = planner::kind_of_named_plan(key.name) == planner::JobKind::kSharding
                     ? costs::of_gpus(inputs_.cluster(point))
                     : inputs_.cluster(point),
      .network = sim::parse_network(value(point, kNetwork).text),
      .memory_bytes = static_cast<double>(io::available_memory()) /
                      static_cast<double>(io::usable_cores().size())};
  return make_(key.name, {.model = inputs_.model(point),
                          .topology = value(point, kTopology).text,
                          .algorithm = algorithm(inputs_.spec, point),
                          .machines = machines,
                          .limits = {.evaluations = planning.evaluations}});
}

std::optional<plans::ResolvedPlan> SweepPlans::kept(const std::string& text,
                                                    const Point& point) const {
  try {
    return plans::parse_plan_yaml(text, "kept plan",
                                  {.model = inputs_.model(point),
                                   .topology = value(point, kTopology).text,
                                   .nodes = nodes(point, Role::kPoint),
                                   .algorithm = algorithm(inputs_.spec, point),
                                   .trust = inputs_.spec.trust});
  } catch (const io::InputError&) {
    return std::nullopt;
  }
}

void SweepPlans::make(const PlanKey& key, const Planning& planning, Made& made) const {
  const bool keeps = planning.find && planner::is_searched(key.name);
  try {
    if (const auto text = keeps ? planning.find(made.point) : std::nullopt) {
      made.plan = kept(*text, made.point);
    }
    if (made.plan) return;
    made.plan = make_anew(key, planning, made.point);
    if (!keeps || !made.plan) return;
    planning.keep(made.point, plans::plan_yaml(inputs_.model(made.point), made.plan->plan,
                                               {.search = std::string(key.name),
                                                .profile = inputs_.profile(made.point).name,
                                                .network = value(made.point, kNetwork).text}));
  } catch (const io::InputError& error) {
    made.complaint = error.what();
  }
}

bool SweepPlans::is_sharded(const Point& point, Role role) const {
  if (role != Role::kPoint) return false;
  const planner::JobKind kind =
      gives_schedule(inputs_.spec)
          ? planner::kind_of(casync::Schedule::parse(schedule(inputs_.spec, point)))
          : planner::kind_of_named_plan(value(point, kPlan).text);
  return kind == planner::JobKind::kSharding;
}

std::uint32_t SweepPlans::nodes(const Point& point, Role role) const {
  if (!is_sharded(point, role)) return static_cast<std::uint32_t>(*value(point, kNodes).number);
  try {
    return costs::of_gpus(inputs_.base_cluster(point)).nodes;
  } catch (const io::InputError& error) {
    inputs_.spec.fail(kCluster, value(point, kCluster), error.what());
  }
}

bool SweepPlans::is_possible(const Point& point, Role role) const {
  const planner::NamedPlanRow* name = planned_name(point, role);
  return name != nullptr && made_.at(plan_key(point, *name)).plan.has_value();
}

plans::ResolvedPlan SweepPlans::made_for(const Point& point,
                                         const planner::NamedPlanRow& name) const {
  const Made& found = made_.at(plan_key(point, name));
  if (found.plan) return *found.plan;
  throw io::InputError(!found.complaint.empty()
                           ? found.complaint
                           : fmt::format("there is no such plan for topology {}: leave one of the "
                                         "two out",
                                         value(point, kTopology).text));
}

plans::ResolvedPlan SweepPlans::named_or_read(const Point& point,
                                              const plans::PlanContext& context) const {
  // A spec may name plan files. Unlike a command line, it may not bring programs.
  const std::string named =
      plans::trusted_algorithm(inputs_.spec.path(value(point, kPlan)), inputs_.spec.trust);
  plans::ResolvedPlan resolved = plans::resolve_plan(named, context);
  if (resolved.transfer_order.value_or(sim::TransferOrder::kReady) != sim::TransferOrder::kReady) {
    throw io::InputError("the plan is for transfer_order need, which sweeps do not simulate");
  }
  if (resolved.plan.schedule != casync::Schedule()) {
    throw io::InputError(
        fmt::format("the plan is for schedule {}: give axis schedule, and a plan for ddp",
                    resolved.plan.schedule.text()));
  }
  if (const auto partitions = value(point, kPartitions).number) {
    for (casync::Decision& decision : resolved.plan.decisions) {
      decision.partitions = static_cast<std::int32_t>(*partitions);
    }
  }
  return resolved;
}

void SweepPlans::set_schedule(const Point& point, casync::Plan& plan) const {
  const bool has_own = planner::kind_of(plan.schedule) == planner::JobKind::kSharding;
  if (!gives_schedule(inputs_.spec) && has_own) return;
  try {
    plan.schedule = casync::Schedule::parse(schedule(inputs_.spec, point));
    plan.schedule.timetable(inputs_.model(point));
  } catch (const std::invalid_argument& error) {
    inputs_.spec.fail(kSchedule, value(point, kSchedule), error.what());
  }
}

plans::ResolvedPlan SweepPlans::resolve(const Point& point, Role role) const {
  const plans::PlanContext context = {.model = inputs_.model(point),
                                      .topology = value(point, kTopology).text,
                                      .nodes = nodes(point, role),
                                      .algorithm = algorithm(inputs_.spec, point),
                                      .trust = inputs_.spec.trust};
  plans::ResolvedPlan resolved;
  try {
    if (role == Role::kUncompressed) {
      resolved = plans::resolve_plan("none", context);
    } else if (const planner::NamedPlanRow* name = planned_name(point, role)) {
      if (planner::is_searched(name->name) && is_sharded(point, role)) {
        throw io::InputError(
            "it is searched for gradients that are averaged in every step, not for sharded "
            "schedules, whose plans hipress-plan finds: take other plans");
      }
      resolved = made_for(point, *name);
    } else {
      resolved = named_or_read(point, context);
    }
  } catch (const io::InputError& error) {
    inputs_.spec.fail(kPlan, value(point, kPlan), error.what());
  }
  if (role == Role::kPoint) set_schedule(point, resolved.plan);
  const costs::Cluster cluster =
      costs::with_nodes(inputs_.base_cluster(point), resolved.plan.nodes);
  resolved.plan.gpus_per_node = cluster.gpus_per_node;
  if (resolved.plan.rails == 1) resolved.plan.rails = costs::rails(cluster);
  return resolved;
}

void SweepPlans::require_codecs(const Point& point, Role role, const casync::Plan& plan) const {
  const planner::NamedPlanRow* name = planned_name(point, role);
  const bool on_its_own = name != nullptr && name->depends_on_machines;
  for (std::size_t p = 0; p < inputs_.profiles().size(); ++p) {
    if (on_its_own && p != inputs_.number_of_profile(point)) continue;
    for (const casync::Algorithm& algorithm : plan.algorithms) {
      try {
        inputs_.profiles()[p].codec(algorithm.name);
      } catch (const io::InputError& error) {
        const AxisValue& asked = value(point, kAlgorithm);
        const AxisValue& culprit = asked.line > 0 ? asked : value(point, kPlan);
        inputs_.spec.fail(asked.line > 0 ? kAlgorithm : kPlan, culprit, error.what());
      }
    }
  }
}

std::string_view SweepPlans::name(const Point& point, Role role) const {
  if (role == Role::kPoint) return value(point, kPlan).text;
  return role == Role::kUncompressed ? "none" : kDdpName;
}

std::vector<std::uint32_t> SweepPlans::key(const Point& point, Role role) const {
  const planner::NamedPlanRow* name = planned_name(point, role);
  std::vector<std::uint32_t> key;
  if (name != nullptr) {
    key = plan_key(point, *name).values;
  } else if (role == Role::kUncompressed) {
    key = {point[kModel], point[kComputeTime], point[kTopology], point[kNodes],
           point[kGpusPerNode]};
  } else {
    key.assign(point.begin(), point.begin() + kGraphAxes);
  }
  key.push_back(static_cast<std::uint32_t>(role));
  key.push_back(name != nullptr && role == Role::kPoint ? point[kPlan] : 0);
  for (const Axis axis : {kSchedule, kSteps, kFragments, kReshard}) {
    key.push_back(role == Role::kPoint ? point[axis] : 0);
  }
  return key;
}

}  // namespace hipress::sweep
