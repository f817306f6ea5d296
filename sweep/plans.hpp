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

/// What is simulated at a point: its own plan, or a baseline that it is compared with.
enum class Role : std::uint8_t { kPoint, kUncompressed, kDdp };
inline constexpr std::array kAllRoles = {Role::kPoint, Role::kUncompressed, Role::kDdp};
inline constexpr std::size_t kRoles = kAllRoles.size();

/// One of them.
struct Wanted {
  std::int64_t index = 0;  ///< of the point
  Role role = Role::kPoint;
};

/// The plans of a sweep's points: read, named, or made for the machines of each, once.
class SweepPlans {
 public:
  /// Makes the plans that are wanted, several at a time. The inputs must outlive it.
  SweepPlans(const SweepInputs& inputs, const std::vector<Wanted>& wanted,
             const Planning& planning);

  /// How many plans were made.
  std::size_t made() const { return made_.size(); }
  /// Whether a baseline that was wanted exists for the point.
  bool is_possible(const Point& point, Role role) const;
  /// The point's plan, with GPUs as its cluster has them. InputError at the spec's line that names
  /// it.
  plans::ResolvedPlan resolve(const Point& point, Role role) const;
  std::string_view name(const Point& point, Role role) const;
  /// Points with equal keys have the same plan.
  std::vector<std::uint32_t> key(const Point& point, Role role) const;
  /// A plan that is made for machines must run on these, any other on all of the sweep's.
  void require_codecs(const Point& point, Role role, const casync::Plan& plan) const;

 private:
  /// Whether the point's parameters are in shards, so that every GPU is a node.
  bool is_sharded(const Point& point, Role role) const;
  /// How many nodes a plan has: the axis's, or all of their GPUs.
  std::uint32_t nodes(const Point& point, Role role) const;
  /// What a plan that is made depends on: the values of some axes, and its name.
  struct PlanKey {
    std::vector<std::uint32_t> values;
    std::string_view name;
    auto operator<=>(const PlanKey&) const = default;
  };
  /// None where there is no such plan, or what was wrong with it.
  struct Made {
    Point point{};
    std::optional<plans::ResolvedPlan> plan;
    std::string complaint;
  };

  /// The name by which the plan is made; null: it is named or read.
  const planner::NamedPlanRow* planned_name(const Point& point, Role role) const;
  /// Baselines do not depend on the algorithm, and some plans not on the machines.
  PlanKey plan_key(const Point& point, const planner::NamedPlanRow& name) const;
  /// What is made has partitions of its own.
  void require_own_partitions(const Point& point) const;
  /// Complaints are kept for the first point that needs the plan: for a baseline, that is none.
  void make(const PlanKey& key, const Planning& planning, Made& made) const;
  std::optional<plans::ResolvedPlan> make_anew(const PlanKey& key, const Planning& planning,
                                               const Point& point) const;
  /// A searched plan that an earlier sweep left as text; none: it does not fit.
  std::optional<plans::ResolvedPlan> kept(const std::string& text, const Point& point) const;
  plans::ResolvedPlan made_for(const Point& point, const planner::NamedPlanRow& name) const;
  /// The point's plan where it is not made: a file or a name, with the partitions of that axis.
  void set_schedule(const Point& point, casync::Plan& plan) const;
  plans::ResolvedPlan named_or_read(const Point& point, const plans::PlanContext& context) const;
  const AxisValue& value(const Point& point, Axis axis) const { return inputs_.value(point, axis); }

  const SweepInputs& inputs_;
  const std::vector<planner::NamedPlanRow> names_;
  const MakePlan make_;
  std::map<PlanKey, Made> made_;
};

}  // namespace hipress::sweep
