// The language's operators on arrays and numbers.

#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

namespace {

/// Bits of whole numbers made of floats in code that runs for every element: what fp32 holds.
constexpr std::int64_t kMostLaneBits = 24;
constexpr std::int64_t kMostWholeSum = 1 << 20;

}  // namespace

void Elaborator::require_arguments(const Expression& call, std::size_t count,
                                   std::string_view form) {
  if (call.operands.size() != count) {
    throw CompileError(call.place, fmt::format("{} is written {}", call.name, form));
  }
}

void Elaborator::require_program_level(const Expression& call) {
  if (level_ == Level::kLambda) {
    throw CompileError(call.place,
                       fmt::format("{} works on arrays and stands outside lambdas", call.name));
  }
}

Thing Elaborator::array(const Expression& operand) {
  const Thing thing = evaluate(operand);
  if (thing.kind != ThingKind::kArray) {
    throw CompileError(operand.place,
                       fmt::format("this is {}, an array is needed", describe(thing)));
  }
  return thing;
}

Thing Elaborator::function(const Expression& operand) {
  const Thing thing = evaluate(operand);
  if (thing.kind != ThingKind::kLambda) {
    throw CompileError(operand.place,
                       fmt::format("this is {}, a lambda is needed", describe(thing)));
  }
  return thing;
}

Thing Elaborator::range(const Expression& call) {
  require_program_level(call);
  require_arguments(call, 1, "range(n)");
  const Thing length = scalar(*call.operands[0]);
  if (values()[length.node].op != Op::kSize) {
    throw CompileError(call.operands[0]->place,
                       "array size unknown: arrays are as long as the gradient, "
                       "range(gradient.size)");
  }
  return {.kind = ThingKind::kArray,
          .type = {TypeName::kInt},
          .node = values().leaf(Op::kIndex, ScalarKind::kInt)};
}

Thing Elaborator::map(const Expression& call) {
  require_program_level(call);
  if (call.operands.size() < 2) {
    throw CompileError(call.place, "map is written map(a, f), or map(a, b, f) for several arrays");
  }
  std::vector<Thing> elements;
  for (std::size_t i = 0; i + 1 < call.operands.size(); ++i) {
    Thing element = array(*call.operands[i]);
    element.kind = ThingKind::kScalar;
    elements.push_back(element);
  }
  const Thing f = function(*call.operands.back());
  Thing result = apply(f, elements, call.place);
  result.kind = ThingKind::kArray;
  return result;
}

Thing Elaborator::reduce(const Expression& call) {
  require_program_level(call);
  require_arguments(call, 3, "reduce(a, initial, f)");
  if (role_ != Role::kEncoder) {
    throw CompileError(call.place,
                       "a decoder has no gradient to reduce; reduce in the encoder and "
                       "send the result");
  }
  Thing elements = array(*call.operands[0]);
  elements.kind = ThingKind::kScalar;
  const Thing initial = scalar(*call.operands[1]);
  const Thing f = function(*call.operands[2]);
  if (f.lambda->parameters.size() != 2) {
    throw CompileError(call.operands[2]->place, "reduce takes a lambda of two values");
  }
  // The lambda's type is what is computed in: its parameters' and its result's, which agree.
  const Type type = scalar_type(f.lambda->parameters[0].type);
  std::vector<Thing> arguments = {made(type, values().leaf(Op::kFirst, type.kind())),
                                  made(type, values().leaf(Op::kSecond, type.kind()))};
  const Thing body = apply(f, arguments, call.place);
  if (scalar_type(f.lambda->parameters[1].type).kind() != type.kind() ||
      body.type.kind() != type.kind() || type.kind() == ScalarKind::kBool || type.clamps()) {
    throw CompileError(call.operands[2]->place,
                       "reduce's lambda takes two floats and returns one, or takes two ints and "
                       "returns one");
  }
  Reduction reduction{.kind = reduction_kind(body.node, call.operands[2]->place),
                      .element = convert(elements, type, call.operands[0]->place).node,
                      .initial = convert(initial, type, call.operands[1]->place).node,
                      .name = {}};
  require_element_code(reduction.element, call.operands[0]->place);
  finish(reduction, type, call);
  return made(type, add(reduction));
}

ReductionKind Elaborator::reduction_kind(NodeId body, const Place& place) {
  const Node& node = values()[body];
  const auto is_pair = [&](NodeId a, NodeId b) {
    const Op x = values()[a].op, y = values()[b].op;
    return (x == Op::kFirst && y == Op::kSecond) || (x == Op::kSecond && y == Op::kFirst);
  };
  const NodeId a = node.arguments[0], b = node.arguments[1], c = node.arguments[2];
  if (node.op == Op::kAdd && is_pair(a, b)) {
    return node.kind == ScalarKind::kInt ? ReductionKind::kWholeSum : ReductionKind::kSum;
  }
  if (node.kind == ScalarKind::kFloat) {
    if (node.op == Op::kMin && is_pair(a, b)) return ReductionKind::kMinimum;
    if (node.op == Op::kMax && is_pair(a, b)) return ReductionKind::kMaximum;
    if (node.op == Op::kSelect && is_pair(b, c)) {
      const Node& test = values()[a];
      if ((test.op == Op::kLess || test.op == Op::kLessEqual) &&
          is_pair(test.arguments[0], test.arguments[1])) {
        return b == test.arguments[0] ? ReductionKind::kMinimum : ReductionKind::kMaximum;
      }
    }
  }
  throw CompileError(place,
                     "this lambda is neither a sum (a + b) nor a minimum nor a maximum of "
                     "floats, which are the reductions there are; put other arithmetic "
                     "into the map before it");
}

void Elaborator::finish(const Reduction& reduction, const Type& type, const Expression& call) {
  if (values().per_element(reduction.initial)) {
    throw CompileError(call.operands[1]->place, "the initial value is one value");
  }
  if (reduction.kind == ReductionKind::kMinimum || reduction.kind == ReductionKind::kMaximum) {
    notes_.push_back(compll::describe(
        call.operands[1]->place, "note: ",
        fmt::format("this reduce is a {}: its initial value counts for an empty array only",
                    reduction.kind == ReductionKind::kMinimum ? "minimum" : "maximum")));
  }
  if (type.kind() == ScalarKind::kInt) {
    const Values::Range range = values().range(reduction.element);
    if (range.least < -kMostWholeSum || range.most > kMostWholeSum) {
      throw CompileError(call.operands[0]->place,
                         "ints that are summed must be known to lie within 2^20 of 0 (counts, "
                         "codes); sum floats instead");
    }
  }
}

NodeId Elaborator::add(const Reduction& reduction) {
  auto& reductions = program_.encoder->reductions;
  const auto number = static_cast<std::int64_t>(reductions.size());
  if (number >= 64) throw std::length_error("more than 64 reductions");
  values().set_reduction_level(number, values().level(reduction.element));
  reductions.push_back(reduction);
  return values().leaf(Op::kReduction, values()[reduction.element].kind, number);
}

void Elaborator::require_element_code(NodeId node, const Place& place) {
  std::vector<NodeId> open = {node};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Node& at = values()[id];
    if (at.op == Op::kIndex) {
      throw CompileError(place,
                         "the value of an element may not depend on its index, but for "
                         "reading the gradient there");
    }
    for (const NodeId argument : at.arguments) {
      if (argument >= 0) open.push_back(argument);
    }
  }
  check_lanes(seen, place);
}

void Elaborator::check_lanes(const std::set<NodeId>& nodes, const Place& place) {
  for (const NodeId id : nodes) {
    const Node& node = values()[id];
    if (!values().per_element(id) || node.kind != ScalarKind::kInt || node.op == Op::kCode)
      continue;
    const Values::Range range = values().range(id);
    const bool narrow = range.least >= 0 && range.most <= 0x7fffffff;
    if (node.op == Op::kToBits && values().range(node.arguments[1]).least <= kMostLaneBits)
      continue;
    const bool lacks = node.op == Op::kDivide || node.op == Op::kRemainder ||
                       node.op == Op::kToInt || node.op == Op::kAbs || node.op == Op::kNot;
    const bool sum_of_signs = range.least >= -kMostWholeSum && range.most <= kMostWholeSum &&
                              (node.op == Op::kSelect || node.op == Op::kNegate);
    if (lacks || !(narrow || sum_of_signs)) {
      throw CompileError(place,
                         "whole numbers in code that runs for every element must be known "
                         "to lie within 0 … 2^31 - 1 and are not divided; use floats, or "
                         "uint<bits> for a float's clamped whole part");
    }
  }
}

Thing Elaborator::on_floats(const Expression& call, Op op) {
  require_arguments(call, 1, fmt::format("{}(x)", call.name));
  const Thing value = scalar(*call.operands[0]);
  require_number(value, call.operands[0]->place);
  if (value.type.kind() == ScalarKind::kInt) {
    if (op == Op::kFloor || op == Op::kCeil) return value;
    if (op == Op::kAbs) return made({TypeName::kInt}, values().make(op, value.node));
  }
  const Thing real = convert(value, {TypeName::kFloat}, call.operands[0]->place);
  return made({TypeName::kFloat}, values().make(op, real.node));
}

Thing Elaborator::floor(const Expression& call) { return on_floats(call, Op::kFloor); }

Thing Elaborator::ceil(const Expression& call) { return on_floats(call, Op::kCeil); }

Thing Elaborator::abs(const Expression& call) { return on_floats(call, Op::kAbs); }

Thing Elaborator::sqrt(const Expression& call) { return on_floats(call, Op::kSqrt); }

Thing Elaborator::of_two(const Expression& call, Op op) {
  require_arguments(call, 2, fmt::format("{}(a, b)", call.name));
  const Thing a = scalar(*call.operands[0]), b = scalar(*call.operands[1]);
  require_number(a, call.operands[0]->place);
  require_number(b, call.operands[1]->place);
  const bool real = a.type.kind() == ScalarKind::kFloat || b.type.kind() == ScalarKind::kFloat;
  const Type type{real ? TypeName::kFloat : TypeName::kInt};
  return made(type, values().make(op, converted(a.node, type), converted(b.node, type)));
}

Thing Elaborator::min(const Expression& call) { return of_two(call, Op::kMin); }

Thing Elaborator::max(const Expression& call) { return of_two(call, Op::kMax); }

Thing Elaborator::random(const Expression& call) {
  require_arguments(call, 2, "random<float>(least, most)");
  if (call.type.name != TypeName::kFloat || call.type.array) {
    throw CompileError(call.place, "random numbers are floats: random<float>(least, most)");
  }
  if (level_ != Level::kLambda) {
    throw CompileError(call.place, "random numbers are drawn per element, inside a lambda");
  }
  const Type type{TypeName::kFloat};
  const Thing least = convert(scalar(*call.operands[0]), type, call.operands[0]->place);
  const Thing most = convert(scalar(*call.operands[1]), type, call.operands[1]->place);
  const auto [site, is_new] = sites_.try_emplace(&call, static_cast<std::int64_t>(sites_.size()));
  const NodeId draw = values().leaf(Op::kDraw, ScalarKind::kFloat, site->second);
  if (is_number(least.node, 0) && is_number(most.node, 1)) return made(type, draw);
  const NodeId width = values().make(Op::kSubtract, most.node, least.node);
  return made(type, values().make(Op::kAdd, least.node, values().make(Op::kMultiply, draw, width)));
}

bool Elaborator::is_number(NodeId node, double value) {
  return values()[node].op == Op::kReal && values()[node].real == value;
}

Thing Elaborator::not_here(const Expression& call) {
  throw CompileError(call.place,
                     call.name == "concat"
                         ? "concat makes the message: compressed = concat(…);"
                         : "extract is a statement of its own: extract(compressed, …);");
}

}  // namespace hipress::compll
