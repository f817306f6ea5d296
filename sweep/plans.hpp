#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/baselines/named_plans.hpp"
#include "plans/plan_file.hpp"
#include "sweep/inputs.hpp"
#include "sweep/planning.hpp"

namespace hipress::sweep {

/// Role of a plan at a point: its own plan, or a baseline for comparison.
enum class Role : std::uint8_t { kPoint, kUncompressed, kDdp };
inline constexpr std::array kAllRoles = {Role::kPoint, Role::kUncompressed, Role::kDdp};
inline constexpr std::size_t kRoles = kAllRoles.size();

/// A role at a point.
struct Wanted {
  std::int64_t index = 0;  ///< index of the point
  Role role = Role::kPoint;
};

/// Plans of a sweep's points: read from files, named, or made for the machines of each point. Each
/// plan is made once.
class SweepPlans {
 public:
  /// Makes the plans in `wanted`, several at a time. `inputs` must outlive this object.
  SweepPlans(const SweepInputs& inputs, const std::vector<Wanted>& wanted,
             const Planning& planning);

  /// Number of plans made.
  std::size_t made() const { return made_.size(); }
  /// True if the baseline exists for the point. The baseline must have been in `wanted`.
  bool is_possible(const Point& point, Role role) const;
  /// Plan of the point, with the cluster's GPUs per node. Throws InputError at the spec's line that
  /// names the plan.
  plans::ResolvedPlan resolve(const Point& point, Role role) const;
  std::string_view name(const Point& point, Role role) const;
  /// Key of a plan: points with equal keys have the same plan.
  std::vector<std::uint32_t> key(const Point& point, Role role) const;
  /// Throws InputError if a profile lacks a codec of the plan. Plans made for one machine need its
  /// profile only, others need all profiles of the sweep.
  void require_codecs(const Point& point, Role role, const casync::Plan& plan) const;

 private:
  /// True if the point's parameters are sharded; each GPU is then a node.
  bool is_sharded(const Point& point, Role role) const;
  /// Number of nodes of the plan: the value of axis kNodes, or all GPUs if it is sharded.
  std::uint32_t nodes(const Point& point, Role role) const;
  /// Key of a plan that is made: the axis values that it depends on, and its name.
  struct PlanKey {
    std::vector<std::uint32_t> values;
    std::string_view name;
    auto operator<=>(const PlanKey&) const = default;
  };
  /// A made plan; empty with the complaint if making it failed, without one if it does not exist.
  struct Made {
    Point point{};
    std::optional<plans::ResolvedPlan> plan;
    std::string complaint;
  };

  /// Row of a plan that is made by name; null if it is read from a file or built in.
  const planner::NamedPlanRow* planned_name(const Point& point, Role role) const;
  /// Key of the plan. Baseline ddp does not depend on the algorithm, and some plans not on the
  /// machines.
  PlanKey plan_key(const Point& point, const planner::NamedPlanRow& name) const;
  /// Throws InputError if axis partitions is set: plans that are made choose their own.
  void require_own_partitions(const Point& point) const;
  /// Makes the plan. Complaints are stored and thrown by the first point that uses the plan;
  /// nothing is thrown for a baseline, which is left out.
  void make(const PlanKey& key, const Planning& planning, Made& made) const;
  std::optional<plans::ResolvedPlan> make_anew(const PlanKey& key, const Planning& planning,
                                               const Point& point) const;
  /// Parses a searched plan from the cache; empty if it does not fit the point.
  std::optional<plans::ResolvedPlan> kept(const std::string& text, const Point& point) const;
  plans::ResolvedPlan made_for(const Point& point, const planner::NamedPlanRow& name) const;
  /// Plan of a file or a built-in name, with the partitions of axis kPartitions.
  void set_schedule(const Point& point, casync::Plan& plan) const;
  plans::ResolvedPlan named_or_read(const Point& point, const plans::PlanContext& context) const;
  const AxisValue& value(const Point& point, Axis axis) const { return inputs_.value(point, axis); }

  const SweepInputs& inputs_;
  const std::vector<planner::NamedPlanRow> names_;
  const MakePlan make_;
  std::map<PlanKey, Made> made_;
};

}  // namespace hipress::sweep
