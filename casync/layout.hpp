#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "casync/factors.hpp"
#include "casync/layers.hpp"
#include "casync/plan.hpp"
#include "models/model.hpp"

namespace hipress::casync {

struct Topology;

/// What is synchronised as one: a gradient, or a bulk group of several small ones.
struct Unit {
  std::string name;           ///< the gradient's, or "bulk0", "bulk1" … in order of completion
  std::int64_t elements = 0;  ///< a group's: its members' one after the other, and then zeros up to
                              ///< a multiple of 32·N (group_elements())
  std::int8_t algorithm = kRaw;
  std::int32_t partitions = 1;         ///< a group's: N; of shards in messages: N, or of
                                       ///< parameters so many as have all shards between them
  const Topology* topology = nullptr;  ///< a row of topologies()
  std::vector<std::uint32_t> members;  ///< gradients, in the order in which backward completes
                                       ///< them; none if the gradient is part of a group
  double ready_s = 0;                  ///< of the last member
  std::uint32_t factors = 0;           ///< so many stand for it on the wire, one per stage,
  std::uint32_t first_factor = 0;      ///< Layout::units[first_factor …); 0: it travels itself

  /// Slices of its own values: all are one where factors are cut instead.
  std::int32_t slices() const { return factors > 0 ? 1 : partitions; }
};

/// A member's part of a factor.
struct FactorPart {
  std::int64_t first = 0;   ///< value of the factor at which it begins
  std::int64_t values = 0;  ///< fp32
};

/// True if an algorithm is the cast to the type in which all of the unit's gradients are stored: a
/// library then sends them as they are. False for null, which is raw fp32.
bool is_stored_as(const Unit& unit, const models::Model& model, const Algorithm* algorithm);

/// All values of Task::gradient: the model's gradients in input order, then the bulk groups, then
/// the factors that stand for some units, in the order in which backward completes these units. A
/// factor has no members. Its values are the messages of its unit's members one after the other,
/// each from a multiple of kFactorAlignment on, then zeros up to slices of one length.
struct Layout {
  std::vector<Unit> units;
  std::uint32_t gradients = 0;         ///< of the model: the index of the first group
  std::uint32_t first_factor = 0;      ///< the index of the first factor
  std::vector<std::uint32_t> order;    ///< units with members, as backward completes them
  std::vector<std::uint32_t> unit_of;  ///< per gradient: the unit that it is synchronised in

  std::vector<Factor> factors;  ///< of units[first_factor …)

  /// Of shards in messages, per part: the units in which parameters are gathered before forward and
  /// before backward, each with the part's gradients as members; kNoIndex: they stay whole.
  struct Parameters {
    std::uint32_t forward = 0, backward = 0;
  };
  std::vector<Parameters> parameters;
  std::uint32_t first_parameters = 0;  ///< the index of the first such unit

  /// Of the plan's schedule; a unit's members are of one part.
  Timetable timetable;

  bool is_group(std::uint32_t unit) const { return unit >= gradients && unit < first_parameters; }
  bool is_factor(std::uint32_t unit) const { return unit >= first_factor; }
  bool is_parameters(std::uint32_t unit) const {
    return unit >= first_parameters && unit < first_factor;
  }
  /// The part of the timetable that a unit with members is of.
  std::uint32_t part_of(std::uint32_t unit) const {
    return timetable.part_of[units[unit].members.front()];
  }
  /// What travels of a unit with members: it, or its factors by stage.
  std::vector<std::uint32_t> carried(std::uint32_t unit) const;
  /// Those of whose values factors are made, as backward completes them.
  std::vector<std::uint32_t> owners() const;
  /// The unit whose values a unit is for: a factor's is the one that it is a message of.
  std::uint32_t owner(std::uint32_t unit) const {
    return is_factor(unit) ? factors[unit - first_factor].unit : unit;
  }
};

/// Derives the layout from a model and a plan for it. Throws std::invalid_argument that names the
/// gradient for a plan that does not fit: another number of decisions, K < 1, an unknown topology,
/// a root that is not a node, topologies of two operations, a gradient compressed otherwise than in
/// half precision with a topology of the form kWhole, a bulk group made by hand of unknown,
/// repeated or unlike gradients, or a schedule that does not fit the model.
Layout make_layout(const models::Model& model, const Plan& plan);

/// A gradient as the rule for bulk groups sees it.
struct Groupable {
  Picoseconds ready{};
  std::int64_t bytes = 0;        ///< in its dtype; of its messages, if they are factors
  std::int8_t algorithm = kRaw;  ///< on which its topology depends, too
};
/// `what` is the algorithm; null: raw.
Groupable groupable(const models::Gradient& gradient, std::int8_t algorithm,
                    const Algorithm* what = nullptr);

/// The rule goes through the gradients in the order of backward, and skips those not smaller than
/// the threshold. A gradient joins the last group of its algorithm, or begins the next one if it is
/// ready too late or would make that one too large. A group of one is none. Takes gradients in that
/// order; returns for each the place of its group's last member, or its own if it is in none.
std::vector<std::uint32_t> bulk_groups(const Aggregation& rule,
                                       std::span<const Groupable> gradients);

/// The elements of a bulk group whose members have so many.
std::int64_t group_elements(std::int64_t elements, std::uint32_t nodes);

std::vector<std::string> unit_names(const Layout& layout);

/// Per unit, the place in the order of backward of its last member, which the next forward pass
/// needs first of them; of a unit without members 0.
std::vector<std::uint32_t> need_places(const Layout& layout, const models::Model& model);

/// The order in which all ranks run a library's collectives: that of backward. With pipelining, a
/// later factor of a unit comes one place after the factor before it, behind the first factors
/// there, so that other collectives run between a unit's stages. Without pipelining it follows that
/// factor directly. Units without members are left out.
std::vector<std::uint32_t> collective_order(const Layout& layout, bool pipelining = true);

/// One member's place in a unit.
struct Member {
  std::uint32_t gradient = 0;
  std::int64_t first = 0;  ///< element of the unit at which it begins
  std::int64_t elements = 0;
};

/// The places of a unit's members; what is behind the last is zero.
std::vector<Member> places(const Unit& unit, const models::Model& model);

/// The parts of a factor that a unit's members have, in their order. `factor` is an index of
/// Layout::units.
std::vector<FactorPart> factor_parts(const Layout& layout, std::uint32_t factor,
                                     const models::Model& model, const Plan& plan);

}  // namespace hipress::casync
