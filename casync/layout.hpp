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

/// A unit of synchronisation: a gradient, or a bulk group (fusion buffer) of several small ones.
struct Unit {
  std::string name;           ///< the gradient's, or "bulk0", "bulk1" … in order of completion
  std::int64_t elements = 0;  ///< in a group, members follow one another, then zeros up to a
                              ///< multiple of 32·N (group_elements())
  std::int8_t algorithm = kRaw;
  std::int32_t partitions = 1;         ///< K; N for groups and for shards in messages, and for
                                       ///< parameters the number of nodes that gather them
  const Topology* topology = nullptr;  ///< a row of topologies()
  std::vector<std::uint32_t> members;  ///< gradients, in the order in which backward completes
                                       ///< them; none if the gradient is part of a group
  double ready_s = 0;                  ///< ready time of the last member
  std::uint32_t factors = 0;           ///< number of factors that travel instead of it, one per
                                       ///< stage; 0: it travels itself
  std::uint32_t first_factor = 0;      ///< index of its first factor in Layout::units

  /// Number of slices of its own values: 1 if its factors are partitioned instead.
  std::int32_t slices() const { return factors > 0 ? 1 : partitions; }
};

/// A member's part of a factor.
struct FactorPart {
  std::int64_t first = 0;   ///< index of its first value in the factor
  std::int64_t values = 0;  ///< fp32
};

/// True if the algorithm casts to the type in which all of the unit's gradients are stored. A
/// library then sends them without a cast. False for null, which is raw fp32.
bool is_stored_as(const Unit& unit, const models::Model& model, const Algorithm* algorithm);

/// All values of Task::gradient: the model's gradients in input order, the bulk groups, the
/// parameters (Parameters), then the factors, in the order in which backward completes their units.
/// A factor has no members. It holds the messages of its unit's members one after the other, each
/// aligned to kFactorAlignment, then zeros up to slices of equal length.
struct Layout {
  std::vector<Unit> units;
  std::uint32_t gradients = 0;       ///< number of the model's gradients; index of the first group
  std::uint32_t first_factor = 0;    ///< the index of the first factor
  std::vector<std::uint32_t> order;  ///< units with members, as backward completes them
  std::vector<std::uint32_t> unit_of;  ///< per gradient: the unit that it is synchronised in

  std::vector<Factor> factors;  ///< the factors of units[first_factor …)

  /// Units in which a part's parameters are gathered before forward and before backward. Their
  /// members are the part's gradients. kNoIndex: the parameters stay whole.
  struct Parameters {
    std::uint32_t forward = 0, backward = 0;
  };
  std::vector<Parameters> parameters;  ///< per part; empty unless shards travel in messages
  std::uint32_t first_parameters = 0;  ///< the index of the first such unit

  /// The timetable of the plan's schedule. All members of a unit belong to one part.
  Timetable timetable;

  bool is_group(std::uint32_t unit) const { return unit >= gradients && unit < first_parameters; }
  bool is_factor(std::uint32_t unit) const { return unit >= first_factor; }
  /// The part of the timetable that a unit with members belongs to.
  std::uint32_t part_of(std::uint32_t unit) const {
    return timetable.part_of[units[unit].members.front()];
  }
  /// Units that travel for a unit with members: the unit itself, or its factors by stage.
  std::vector<std::uint32_t> carried(std::uint32_t unit) const;
  /// Units that have factors, in the order in which backward completes them.
  std::vector<std::uint32_t> owners() const;
  /// The unit itself; for a factor, the unit that it encodes.
  std::uint32_t owner(std::uint32_t unit) const {
    return is_factor(unit) ? factors[unit - first_factor].unit : unit;
  }
};

/// Derives the layout from a model and a plan for it. Throws std::invalid_argument, which names the
/// gradient, for a plan that does not fit:
///  - a number of decisions that differs from that of gradients, or K < 1;
///  - an unknown topology, topologies of two operations, or a root that is not a node;
///  - a codec other than half precision, with a topology of the form kWhole;
///  - a manual bulk group with unknown, repeated or incompatible gradients;
///  - a schedule that does not fit the model.
Layout make_layout(const models::Model& model, const Plan& plan);

/// Properties of a gradient that decide about bulk groups.
struct Groupable {
  Picoseconds ready{};
  std::int64_t bytes = 0;        ///< size in its dtype; size of its messages, if they are factors
  std::int8_t algorithm = kRaw;  ///< determines the topology, too
};
/// Properties of a gradient. `what`: the algorithm of index `algorithm`; null: raw.
Groupable groupable(const models::Gradient& gradient, std::int8_t algorithm,
                    const Algorithm* what = nullptr);

/// Forms bulk groups of gradients, which are given in the order of backward. Gradients not smaller
/// than the threshold stay alone. Any other gradient joins the last group of its algorithm; if it
/// is ready too late or would make that group too large, it begins the next group. Returns for each
/// gradient the place of its group's last member, or its own place if it stays alone.
std::vector<std::uint32_t> bulk_groups(const Aggregation& rule,
                                       std::span<const Groupable> gradients);

/// Padded length of a bulk group whose members have `elements` elements together: a multiple of
/// 32·N.
std::int64_t group_elements(std::int64_t elements, std::uint32_t nodes);

std::vector<std::string> unit_names(const Layout& layout);

/// Priority per unit: its last member's place in the order of backward, as the next forward pass
/// needs that member first. 0 for a unit without members.
std::vector<std::uint32_t> need_places(const Layout& layout, const models::Model& model);

/// The order in which all ranks run a library's collectives: the order of backward. With
/// pipelining, stage s of the unit at place p runs at place p + s, after the earlier stages of
/// other units there, so that other collectives run between a unit's stages. Without pipelining a
/// unit's factors follow one another directly. Units without members are left out.
std::vector<std::uint32_t> collective_order(const Layout& layout, bool pipelining = true);

/// One member's place in a unit.
struct Member {
  std::uint32_t gradient = 0;
  std::int64_t first = 0;  ///< index of its first element in the unit
  std::int64_t elements = 0;
};

/// The places of a unit's members. Elements after the last member are zero.
std::vector<Member> places(const Unit& unit, const models::Model& model);

/// The members' parts of a factor, in the order of Unit::members. `factor` is an index into
/// Layout::units.
std::vector<FactorPart> factor_parts(const Layout& layout, std::uint32_t factor,
                                     const models::Model& model, const Plan& plan);

}  // namespace hipress::casync
