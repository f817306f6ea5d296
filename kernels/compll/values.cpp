#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "kernels/compll/program.hpp"

namespace hipress::compll {

namespace {

constexpr std::size_t kMaxNodes = 100000;
constexpr std::int64_t kMinInt = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

std::size_t hash_of(const Node& node) {
  std::size_t hash = static_cast<std::size_t>(node.op) * 31 + static_cast<std::size_t>(node.kind);
  const auto mix = [&](std::size_t part) { hash = (hash ^ part) * 0x9e3779b97f4a7c15u + 1; };
  for (const NodeId argument : node.arguments) mix(static_cast<std::size_t>(argument));
  mix(std::hash<std::int64_t>()(node.integer));
  mix(static_cast<std::size_t>(node.domain));
  mix(std::hash<double>()(node.real));
  return hash;
}

bool same(const Node& a, const Node& b) {
  const bool same_real = a.real == b.real && std::signbit(a.real) == std::signbit(b.real);
  return a.op == b.op && a.kind == b.kind && a.integer == b.integer && a.domain == b.domain &&
         same_real &&
         std::equal(std::begin(a.arguments), std::end(a.arguments), std::begin(b.arguments));
}

/// Converts modulo 2^64: ints of the language wrap.
std::int64_t wrap(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::int64_t fold(Op op, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      return wrap(ua + ub);
    case Op::kSubtract:
      return wrap(ua - ub);
    case Op::kMultiply:
      return wrap(ua * ub);
    case Op::kDivide:
      return b == 0 ? 0 : b == -1 ? wrap(0 - ua) : a / b;
    case Op::kRemainder:
      return b == 0 || b == -1 ? 0 : a % b;
    case Op::kAnd:
      return a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kShiftLeft:
      return b < 0 || b > 63 ? 0 : wrap(ua << b);
    case Op::kShiftRight:
      return a >> std::clamp<std::int64_t>(b, 0, 63);
    case Op::kLess:
      return a < b ? 1 : 0;
    case Op::kLessEqual:
      return a <= b ? 1 : 0;
    case Op::kEqual:
      return a == b ? 1 : 0;
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    default:
      throw std::logic_error("an operation that integers do not have");
  }
}

bool compares(Op op) { return op == Op::kLess || op == Op::kLessEqual || op == Op::kEqual; }

}  // namespace

NodeId Values::keep(Node node) {
  if (buckets_.empty()) buckets_.resize(4096);
  auto& bucket = buckets_[hash_of(node) % buckets_.size()];
  for (const NodeId id : bucket) {
    if (same((*this)[id], node)) return id;
  }
  if (nodes_.size() == kMaxNodes) {
    throw std::length_error("the program comes to more than 100000 operations");
  }
  Facts facts;
  facts.domain = node.domain;
  facts.draws = node.op == Op::kDraw;
  facts.open = node.op == Op::kFirst || node.op == Op::kSecond;
  facts.by_slice = node.op == Op::kSize || node.op == Op::kReduction || node.op == Op::kField ||
                   node.op == Op::kLength || node.op == Op::kAt;
  facts.from_message =
      node.op == Op::kField || node.op == Op::kPart || node.op == Op::kCode || node.op == Op::kAt;
  facts.measured = facts.by_slice && node.op != Op::kSize && node.op != Op::kField;
  if (node.op == Op::kReduction) {
    facts.passes = reduction_passes_.at(static_cast<std::size_t>(node.integer)) + 1;
  }
  for (const NodeId argument : node.arguments) {
    if (argument < 0) continue;
    const Facts& part = facts_[static_cast<std::size_t>(argument)];
    facts.domain = std::max(facts.domain, part.domain);
    facts.draws |= part.draws;
    facts.open |= part.open;
    facts.by_slice |= part.by_slice;
    facts.measured |= part.measured;
    facts.from_message |= part.from_message;
    facts.passes = std::max(facts.passes, part.passes);
  }
  facts.range = range_of(node);
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(std::move(node));
  facts_.push_back(facts);
  bucket.push_back(id);
  return id;
}

void Values::set_reduction_passes(std::int64_t number, int passes) {
  reduction_passes_.resize(
      std::max(reduction_passes_.size(), static_cast<std::size_t>(number) + 1));
  reduction_passes_[static_cast<std::size_t>(number)] = passes;
}

void Values::hold_parameter(std::int64_t number, Range range) {
  parameter_ranges.at(static_cast<std::size_t>(number)) = range;
  // Arguments come before their users.
  for (std::size_t id = 0; id < nodes_.size(); ++id) facts_[id].range = range_of(nodes_[id]);
}

void Values::name(NodeId id, const std::string& name) {
  Node& node = nodes_[static_cast<std::size_t>(id)];
  if (node.name.empty()) node.name = name;
}

bool Values::is_constant(NodeId id) const {
  const Op op = (*this)[id].op;
  return op == Op::kInteger || op == Op::kReal;
}

NodeId Values::integer(std::int64_t value) {
  return keep({.op = Op::kInteger, .kind = ScalarKind::kInt, .integer = value, .name = {}});
}
NodeId Values::real(double value) {
  return keep({.op = Op::kReal, .kind = ScalarKind::kFloat, .real = value, .name = {}});
}
NodeId Values::boolean(bool value) {
  return keep(
      {.op = Op::kInteger, .kind = ScalarKind::kBool, .integer = value ? 1 : 0, .name = {}});
}
NodeId Values::leaf(Op op, ScalarKind kind, std::int64_t number) {
  return keep({.op = op, .kind = kind, .integer = number, .name = {}});
}

NodeId Values::element(Op op, ScalarKind kind, std::int64_t number, int domain) {
  return keep({.op = op, .kind = kind, .integer = number, .domain = domain, .name = {}});
}
NodeId Values::at(std::int64_t number, ScalarKind kind, NodeId index) {
  return keep(
      {.op = Op::kAt, .kind = kind, .arguments = {index, -1, -1}, .integer = number, .name = {}});
}

NodeId Values::select(NodeId condition, NodeId yes, NodeId no) {
  if (yes == no) return yes;
  const Node& test = (*this)[condition];
  if (test.op == Op::kInteger) return test.integer != 0 ? yes : no;
  if (test.op == Op::kNot) return select(test.arguments[0], no, yes);
  if ((*this)[yes].kind == ScalarKind::kBool && is_constant(yes)) {
    return (*this)[yes].integer != 0 ? make(Op::kOr, condition, no)
                                     : make(Op::kAnd, make(Op::kNot, condition), no);
  }
  if ((*this)[no].kind == ScalarKind::kBool && is_constant(no)) {
    return (*this)[no].integer != 0 ? make(Op::kOr, make(Op::kNot, condition), yes)
                                    : make(Op::kAnd, condition, yes);
  }
  return keep({.op = Op::kSelect,
               .kind = (*this)[yes].kind,
               .arguments = {condition, yes, no},
               .name = {}});
}

NodeId Values::make(Op op, NodeId a, NodeId b, NodeId c) {
  if (op == Op::kSelect) return select(a, b, c);
  const Node x = (*this)[a];
  const bool constant = is_constant(a) && (b < 0 || is_constant(b));
  if (constant && x.kind == ScalarKind::kBool) {
    const bool left = x.integer != 0;
    if (op == Op::kNot) return boolean(!left);
    if (op == Op::kAnd || op == Op::kOr) {
      const bool right = (*this)[b].integer != 0;
      return boolean(op == Op::kAnd ? left && right : left || right);
    }
  }
  if (constant && x.kind == ScalarKind::kInt) {
    if (op == Op::kNegate) return integer(wrap(0 - static_cast<std::uint64_t>(x.integer)));
    if (op == Op::kNot) return integer(~x.integer);
    if (op == Op::kAbs)
      return integer(x.integer < 0 ? fold(Op::kSubtract, 0, x.integer) : x.integer);
    if (op == Op::kToFloat) return real(static_cast<double>(x.integer));
    if (op == Op::kToBits && (*this)[b].integer <= 32) {
      const std::int64_t top = (std::int64_t{1} << (*this)[b].integer) - 1;
      return integer(std::clamp<std::int64_t>(x.integer, 0, top));
    }
    if (b >= 0 && op != Op::kToBits) {
      const std::int64_t value = fold(op, x.integer, (*this)[b].integer);
      return compares(op) ? boolean(value != 0) : integer(value);
    }
  }
  // Folds no other operation on floats: the results could differ between fp32 and double.
  if (constant && op == Op::kNegate) return real(-x.real);
  if (op == Op::kNot && x.op == Op::kNot) return x.arguments[0];
  if (x.kind == ScalarKind::kBool && (op == Op::kAnd || op == Op::kOr)) {
    for (const auto& [known, other] : {std::pair(a, b), std::pair(b, a)}) {
      if (is_constant(known)) {
        return ((*this)[known].integer != 0) == (op == Op::kAnd) ? other : known;
      }
    }
  }
  // kToBits clamps at 0 and truncates, so a floor before it, or a second kToBits, has no effect.
  if (op == Op::kToBits && x.op == Op::kToBits && x.arguments[1] == b) return a;
  if (op == Op::kToBits && x.op == Op::kFloor) return make(op, x.arguments[0], b);
  const ScalarKind kind = compares(op)                                   ? ScalarKind::kBool
                          : op == Op::kToFloat || op == Op::kFloatOfBits ? ScalarKind::kFloat
                          : op == Op::kToInt || op == Op::kToBits || op == Op::kBits
                              ? ScalarKind::kInt
                              : x.kind;
  return keep({.op = op, .kind = kind, .arguments = {a, b, c}, .name = {}});
}

Values::Range Values::range_of(const Node& node) const {
  const Range all{kMinInt, kMaxInt};
  if (node.kind != ScalarKind::kInt) return all;
  const auto of = [&](int i) { return range(node.arguments[i]); };
  const auto combined = [&](auto operation) {
    const Range a = of(0), b = of(1);
    constexpr std::int64_t kFits = std::int64_t{1} << 30;
    for (const std::int64_t end : {a.least, a.most, b.least, b.most}) {
      if (end < -kFits || end > kFits) return all;
    }
    const std::int64_t ends[] = {operation(a.least, b.least), operation(a.least, b.most),
                                 operation(a.most, b.least), operation(a.most, b.most)};
    return Range{*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
  };
  switch (node.op) {
    case Op::kInteger:
      return {node.integer, node.integer};
    case Op::kParameter:
      return parameter_ranges.at(static_cast<std::size_t>(node.integer));
    case Op::kSize:
    case Op::kLength:
    case Op::kIndex:
      return {0, kMaxInt};
    case Op::kCode:
      return {0, 255};
    case Op::kToBits: {
      const std::int64_t bits = std::clamp<std::int64_t>(range(node.arguments[1]).most, 0, 32);
      return {0, (std::int64_t{1} << bits) - 1};
    }
    case Op::kSelect: {
      const Range a = of(1), b = of(2);
      return {std::min(a.least, b.least), std::max(a.most, b.most)};
    }
    case Op::kAdd:
      return combined([](std::int64_t a, std::int64_t b) { return a + b; });
    case Op::kSubtract:
      return combined([](std::int64_t a, std::int64_t b) { return a - b; });
    case Op::kMultiply:
      return combined([](std::int64_t a, std::int64_t b) { return a * b; });
    case Op::kMin:
      return combined([](std::int64_t a, std::int64_t b) { return std::min(a, b); });
    case Op::kMax:
      return combined([](std::int64_t a, std::int64_t b) { return std::max(a, b); });
    case Op::kShiftLeft:
      if (of(1).least < 0 || of(1).most > 30 || of(0).least < 0 || of(0).most > 256) return all;
      return {of(0).least << of(1).least, of(0).most << of(1).most};
    case Op::kBits:
      return {0, 0x7fffffff};
    case Op::kShiftRight:
      if (of(0).least < 0 || of(1).least < 0 || of(1).most > 63) return all;
      return {of(0).least >> of(1).most, of(0).most >> of(1).least};
    case Op::kAnd:
      if (of(0).least >= 0 && of(1).least >= 0) return {0, std::min(of(0).most, of(1).most)};
      return all;
    default:
      return all;
  }
}

}  // namespace hipress::compll
