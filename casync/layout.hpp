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
  std::int64_t elements = 0;  ///< a group holds its members one after the other, then zeros up to a
                              ///< multiple of 32·N (group_elements())
  std::int8_t algorithm = kRaw;
  std::int32_t partitions = 1;         ///< K: N for groups and for shards in messages; for
                                       ///< parameters, the number of nodes that gather them
  const Topology* topology = nullptr;  ///< a row of topologies()
  std::vector<std::uint32_t> members;  ///< gradients, in the order in which backward completes
                                       ///< them; empty for a gradient that is part of a group
  double ready_s = 0;                  ///< ready time of the last member
  std::uint32_t factors = 0;           ///< number of factors that travel instead of the unit, one
                                       ///< per stage; 0: the unit itself travels
  std::uint32_t first_factor = 0;      ///< index of its first factor in Layout::units

  /// Number of slices of the unit's own values: 1 if its factors are partitioned instead.
  std::int32_t slices() const { return factors > 0 ? 1 : partitions; }
};

/// A member's part of a factor.
struct FactorPart {
  std::int64_t first = 0;   ///< index of its first value in the factor
  std::int64_t values = 0;  ///< fp32
};

/// True if the algorithm casts to the type in which all of the unit's gradients are stored. A
/// library then sends them as they are. False for null, which is raw fp32.
bool is_stored_as(const Unit& unit, const models::Model& model, const Algorithm* algorithm);

/// The units that Task::gradient indexes: the model's gradients in input order, the bulk groups,
/// the parameters (Parameters), then the factors, in the order in which backward completes their
/// units. A factor has no members of its own. It holds the messages of its unit's members one after
/// the other, each aligned to kFactorAlignment, then zeros that make its slices equally long.
struct Layout {
  std::vector<Unit> units;
  std::uint32_t gradients = 0;       ///< number of the model's gradients; index of the first group
  std::uint32_t first_factor = 0;    ///< the index of the first factor
  std::vector<std::uint32_t> order;  ///< units with members, as backward completes them
  std::vector<std::uint32_t> unit_of;  ///< per gradient: the unit with which it is synchronised

  std::vector<Factor> factors;  ///< the factors of units[first_factor …)

  /// Units by which a part's parameters are gathered before forward and before backward. Their
  /// members are the part's gradients. `backward` is kNoIndex if the parameters stay whole.
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
  /// Units that are sent for a unit with members: the unit itself, or its factors by stage.
  std::vector<std::uint32_t> carried(std::uint32_t unit) const;
  /// Units that have factors, in the order in which backward completes them.
  std::vector<std::uint32_t> owners() const;
  /// The unit itself; for a factor, the unit that it encodes.
  std::uint32_t owner(std::uint32_t unit) const {
    return is_factor(unit) ? factors[unit - first_factor].unit : unit;
  }
};

/// Derives the layout from a model and a plan for it. Throws std::invalid_argument if the plan does
/// not fit; the message names the gradient. Causes:
///  - the numbers of decisions and gradients differ, or K < 1;
///  - a topology is unknown, the topologies' operations differ, or the root is not a node;
///  - a topology of the form kWhole is to carry a codec other than half precision;
///  - a manual bulk group has unknown, repeated or incompatible gradients;
///  - the schedule does not fit the model.
Layout make_layout(const models::Model& model, const Plan& plan);

/// Properties of a gradient that determine its bulk group.
struct Groupable {
  Picoseconds ready{};
  std::int64_t bytes = 0;        ///< size in its dtype, or of its messages if they are factors
  std::int8_t algorithm = kRaw;  ///< determines the topology, too
};
/// Properties of a gradient. `what`: the algorithm of index `algorithm`; null: raw.
Groupable groupable(const models::Gradient& gradient, std::int8_t algorithm,
                    const Algorithm* what = nullptr);

/// Forms bulk groups of gradients, which are given in the order of backward. Gradients not smaller
/// than the threshold stay alone. Any other gradient joins the latest group of its algorithm, or
/// begins the next one if it is ready too late or would make that group too large. Returns for each
/// gradient the index of its group's last member, or its own index if it stays alone.
std::vector<std::uint32_t> bulk_groups(const Aggregation& rule,
                                       std::span<const Groupable> gradients);

/// Padded length of a bulk group with `elements` elements in total: the next multiple of 32·N.
std::int64_t group_elements(std::int64_t elements, std::uint32_t nodes);

std::vector<std::string> unit_names(const Layout& layout);

/// Priority per unit: the place of its last member in the order of backward. The next forward pass
/// needs that member first. 0 for a unit without members.
std::vector<std::uint32_t> need_places(const Layout& layout, const models::Model& model);

/// The order in which all ranks run a library's collectives: that of backward. With pipelining,
/// stage s of the p-th unit runs at place p + s, after the earlier stages of other units there. For
/// units A, B and C of two stages each: A1, B1, A2, C1, B2, C2. Without pipelining, a unit's
/// factors follow one another directly: A1, A2, B1, B2, C1, C2. Units without members are left out.
std::vector<std::uint32_t> collective_order(const Layout& layout, bool pipelining = true);

/// One member's place in a unit.
struct Member {
  std::uint32_t gradient = 0;
  std::int64_t first = 0;  ///< index of its first element in the unit
  std::int64_t elements = 0;
};

/// The places of a unit's members. Elements after the last member are zero.
std::vector<Member> places(const Unit& unit, const models::Model& model);

/// The parts of a factor, one per member of the unit that it encodes (Layout::owner()), in the
/// order of that unit's members. `factor` is an index into Layout::units.
std::vector<FactorPart> factor_parts(const Layout& layout, std::uint32_t factor,
                                     const models::Model& model, const Plan& plan);

}  // namespace hipress::casync
