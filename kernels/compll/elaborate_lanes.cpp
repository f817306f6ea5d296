// Checks whether lanes can run a quantiser's element code.

#include <fmt/format.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

namespace {

/// Maximum width, in bits, of a whole number that element code makes from a float: the precision of
/// fp32.
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
  // `seen` is in the order of ids: operands come before results, so the first failure is the cause.
  for (const NodeId id : seen) {
    if (!values().per_element(id)) continue;
    const std::string why = lanes_lack(id);
    if (why.empty()) continue;
    const auto written = places_.find(id);
    return be_general(written == places_.end() ? place : written->second, why);
  }
}

std::string Elaborator::lanes_lack(NodeId id) const {
  const Values& values = program_.values;
  const Node& node = values[id];
  const NodeId a = node.arguments[0], b = node.arguments[1];
  const auto narrow = [&](NodeId value) {
    const Values::Range range = values.range(value);
    return range.least >= 0 && range.most <= 0x7fffffff;
  };
  const auto too_wide = [&](NodeId value, const char* what) {
    const Values::Range range = values.range(value);
    const bool known = range.least > std::numeric_limits<std::int64_t>::min() ||
                       range.most < std::numeric_limits<std::int64_t>::max();
    return fmt::format(
        "{} is a whole number {}, and code that runs for every element takes 0 to "
        "2^31 - 1 here; compute it with floats, as float(a) - b, which uint<8>(…) clamps",
        what, known ? fmt::format("of {} to {}", range.least, range.most) : "of any size");
  };
  const bool of_whole = a >= 0 && values[a].kind == ScalarKind::kInt;
  if (node.op == Op::kToBits) {
    if (of_whole) return narrow(a) ? "" : too_wide(a, "what is clamped");
    return values.range(b).most <= kMaxLaneBits
               ? ""
               : "a float becomes a whole number of more than 24 bits, which fp32 does not hold; "
                 "take uint<24> at most";
  }
  const bool compares = node.op == Op::kLess || node.op == Op::kLessEqual ||
                        node.op == Op::kEqual || node.op == Op::kMin || node.op == Op::kMax;
  if (compares && of_whole) {
    for (const NodeId side : {a, b}) {
      if (!narrow(side)) return too_wide(side, "what is compared");
    }
  }
  if (node.op == Op::kFloatOfBits) return narrow(a) ? "" : too_wide(a, "the bits of a float");
  if (node.kind != ScalarKind::kInt) return "";
  const auto lacks = [](const char* what, const char* instead) {
    return fmt::format("code that runs for every element cannot {}; {}", what, instead);
  };
  switch (node.op) {
    case Op::kDivide:
    case Op::kRemainder:
      return lacks("divide whole numbers", "divide floats, or shift by a constant");
    case Op::kToInt:
      return lacks("make a signed int of a float", "write uint<8>(x), which clamps at 0, or floor");
    case Op::kAbs:
      return lacks("take an int's magnitude", "take abs of a float");
    case Op::kNot:
      return lacks("turn all bits of an int", "use ^ with a mask, as c ^ 255");
    case Op::kShiftLeft:
    case Op::kShiftRight:
      // A vector shift moves all lanes by the same number of bits.
      if (values.per_element(b)) {
        return lacks("shift by a number of its own", "shift by a constant or a parameter");
      }
      break;
    default:
      break;
  }
  const Values::Range range = values.range(id);
  const bool sum_of_signs = range.least >= -kMaxWholeSum && range.most <= kMaxWholeSum &&
                            (node.op == Op::kSelect || node.op == Op::kNegate);
  return narrow(id) || sum_of_signs ? "" : too_wide(id, "this");
}

}  // namespace hipress::compll
