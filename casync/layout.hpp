#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "models/model.hpp"

namespace hipress::casync {

struct Strategy;

/// What is synchronised as one: a gradient, or a bulk group of several small ones.
struct Unit {
  std::string name;           ///< the gradient's, or "bulk0", "bulk1" … in order of completion
  std::int64_t elements = 0;  ///< a group's: its members' one after the other, and then zeros up to
                              ///< a multiple of 32·N (group_elements())
  std::int8_t algorithm = kRaw;
  std::int32_t partitions = 1;         ///< a group's: N
  const Strategy* strategy = nullptr;  ///< a row of strategies()
  std::vector<std::uint32_t> members;  ///< gradients, in the order in which backward completes
                                       ///< them; none if the gradient is part of a group
  double ready_s = 0;                  ///< of the last member
};

/// All that Task::gradient can be: the model's gradients in input order, then the bulk groups.
struct Layout {
  std::vector<Unit> units;
  std::uint32_t gradients = 0;         ///< of the model: the index of the first group
  std::vector<std::uint32_t> order;    ///< units with members, as backward completes them
  std::vector<std::uint32_t> unit_of;  ///< per gradient: the unit that it is synchronised in

  bool is_group(std::uint32_t unit) const { return unit >= gradients; }
};

/// Derives it from a model and a plan for it. std::invalid_argument that names the gradient for a
/// plan that does not fit: another number of decisions, K < 1, an unknown strategy, a root that is
/// no node, two operations, a gradient compressed otherwise than in half precision with a strategy
/// of the form kWhole, and a group by hand of unknown, repeated or unlike gradients.
Layout make_layout(const models::Model& model, const Plan& plan);

/// A gradient as the rule for bulk groups sees it.
struct Groupable {
  Picoseconds ready{};
  std::int64_t bytes = 0;        ///< in its dtype
  std::int8_t algorithm = kRaw;  ///< on which its strategy depends, too
};
Groupable groupable(const models::Gradient& gradient, std::int8_t algorithm);

/// The rule: a group takes gradients that are smaller than the threshold, have one algorithm, and
/// follow one another in the order of backward, larger ones between them left out, until one is
/// ready too late or would make it too large; a group of one is none. Takes gradients in that order
/// and returns for each the place of its group's last one, which is its own if it is in none.
std::vector<std::uint32_t> bulk_groups(const Aggregation& rule,
                                       std::span<const Groupable> gradients);

/// The elements of a bulk group whose members have so many.
std::int64_t group_elements(std::int64_t elements, std::uint32_t nodes);

std::vector<std::string> unit_names(const Layout& layout);

/// Gradients in the order in which backward completes them; equal ready times keep the input order.
std::vector<std::uint32_t> backward_order(const models::Model& model);

/// Per unit, the place in the order of backward of its last member, which the next forward pass
/// needs first of them; of a unit without members 0.
std::vector<std::uint32_t> need_places(const Layout& layout, const models::Model& model);

/// One member's place in a unit.
struct Member {
  std::uint32_t gradient = 0;
  std::int64_t first = 0;  ///< element of the unit at which it begins
  std::int64_t elements = 0;
};

/// The places of a unit's members; what is behind the last is zero.
std::vector<Member> places(const Unit& unit, const models::Model& model);

}  // namespace hipress::casync
