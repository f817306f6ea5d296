// What a quantiser's code of elements can do on lanes.

#include <algorithm>
#include <set>
#include <vector>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

namespace {

/// Bits, at most, of whole numbers made of floats on lanes: what fp32 holds.
constexpr std::int64_t kMaxLaneBits = 24;

}  // namespace

void Elaborator::expect_element_code(NodeId node, const Place& place) {
  std::vector<NodeId> open = {node};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Node& at = values()[id];
    if (at.op == Op::kIndex) {
      be_general(place, "an element's value depends on its index");
    }
    for (const NodeId argument : at.arguments) {
      if (argument >= 0) open.push_back(argument);
    }
  }
  if (!fits_lanes(seen)) {
    be_general(
        place,
        "whole numbers in code that runs for every element are not known to lie within "
        "0 … 2^31 - 1 (made of floats: 2^24 - 1), or are divided, or shifted by the element");
  }
}

bool Elaborator::fits_lanes(const std::set<NodeId>& nodes) const {
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    return !program_.values.per_element(id) || works_on_lanes(id);
  });
}

bool Elaborator::works_on_lanes(NodeId id) const {
  const Values& values = program_.values;
  const Node& node = values[id];
  const NodeId a = node.arguments[0], b = node.arguments[1];
  const auto narrow = [&](NodeId value) {
    const Values::Range range = values.range(value);
    return range.least >= 0 && range.most <= 0x7fffffff;
  };
  const bool of_whole = a >= 0 && values[a].kind == ScalarKind::kInt;
  if (node.op == Op::kToBits) return of_whole ? narrow(a) : values.range(b).most <= kMaxLaneBits;
  const bool compares = node.op == Op::kLess || node.op == Op::kLessEqual ||
                        node.op == Op::kEqual || node.op == Op::kMin || node.op == Op::kMax;
  if (compares && of_whole && !(narrow(a) && narrow(b))) return false;
  if (node.op == Op::kFloatOfBits) return narrow(a);
  if (node.kind != ScalarKind::kInt) return true;
  // What all lanes are shifted by is one number.
  const bool shifts_each =
      (node.op == Op::kShiftLeft || node.op == Op::kShiftRight) && values.per_element(b);
  const bool lacks = node.op == Op::kDivide || node.op == Op::kRemainder || node.op == Op::kToInt ||
                     node.op == Op::kAbs || node.op == Op::kNot || shifts_each;
  const Values::Range range = values.range(id);
  const bool sum_of_signs = range.least >= -kMaxWholeSum && range.most <= kMaxWholeSum &&
                            (node.op == Op::kSelect || node.op == Op::kNegate);
  return !lacks && (narrow(id) || sum_of_signs);
}

}  // namespace hipress::compll
