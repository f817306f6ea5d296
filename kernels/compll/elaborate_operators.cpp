// Evaluates the language's operators on arrays and numbers.

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

void Elaborator::require_arguments(const Expression& call, std::size_t count,
                                   std::string_view form) {
  if (call.operands.size() != count) {
    throw CompileError(call.place, fmt::format("{} is written {}", call.name, form));
  }
}

void Elaborator::require_program_scope(const Expression& call) {
  if (scope_ == Scope::kLambda) {
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

// ---- domains: where arrays get their lengths from ----

int Elaborator::domain(const Domain& made) {
  auto& domains = program_.domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const Domain& known = domains[i];
    if (known.kind == made.kind && known.source == made.source && known.node == made.node &&
        known.count == made.count && known.descending == made.descending) {
      return static_cast<int>(i);
    }
  }
  if (domains.size() == 64) throw std::length_error("more than 64 kinds of array lengths");
  domains.push_back(made);
  return static_cast<int>(domains.size() - 1);
}

NodeId Elaborator::kept(int domain, NodeId value) {
  if (!values().per_element(value)) return value;
  auto& slots = program_.domains[static_cast<std::size_t>(domain)].kept;
  const auto known = std::find(slots.begin(), slots.end(), value);
  const auto slot = known - slots.begin();
  if (known == slots.end()) slots.push_back(value);
  const NodeId node = values().element(Op::kKept, values()[value].kind, slot, domain);
  values().name(node, values()[value].name);
  return node;
}

NodeId Elaborator::at(const Thing& array, NodeId index) {
  if (!values().per_element(array.node)) return array.node;
  const Node& by = values()[index];
  if (by.op == Op::kIndex && by.domain == array.domain) return array.node;
  // If the index belongs to a selection of this array's elements, the selection keeps the element.
  const Node& plain = by.op == Op::kToBits ? values()[by.arguments[0]] : by;
  if (plain.op == Op::kKept) {
    const Domain& chosen = program_.domains[static_cast<std::size_t>(plain.domain)];
    const Node& original = values()[chosen.kept[static_cast<std::size_t>(plain.integer)]];
    const bool all = &plain == &by || values().range(by.arguments[1]).least == 32;
    if (all && original.op == Op::kIndex && original.domain == array.domain) {
      return kept(plain.domain, array.node);
    }
  }
  auto& arrays = program_.arrays;
  std::size_t number = 0;
  while (number < arrays.size() &&
         (arrays[number].domain != array.domain || arrays[number].element != array.node)) {
    ++number;
  }
  if (number == arrays.size()) arrays.push_back({array.domain, array.node});
  return values().at(static_cast<std::int64_t>(number), values()[array.node].kind, index);
}

NodeId Elaborator::length(int domain) {
  if (domain == 0) return values().leaf(Op::kSize, ScalarKind::kInt);
  const Domain& of = program_.domains[static_cast<std::size_t>(domain)];
  if (of.kind == DomainKind::kRange) {
    return values().make(Op::kMax, of.node, values().integer(0));
  }
  if (of.kind == DomainKind::kSorted) return length(of.source);
  if (is_of_blocks(domain)) {
    const NodeId one = values().integer(1), size = length(0);
    return values().make(
        Op::kDivide,
        values().make(Op::kAdd, size, values().make(Op::kSubtract, program_.block, one)),
        program_.block);
  }
  return values().leaf(Op::kLength, ScalarKind::kInt, domain);
}

NodeId Elaborator::whole_number(const Expression& operand) {
  const Thing value = convert(scalar(operand), {TypeName::kInt}, operand.place);
  if (values().per_element(value.node)) {
    throw CompileError(operand.place, "this is one number for the whole array");
  }
  if (role_ == Role::kDecoder && values().from_message(value.node)) {
    throw CompileError(operand.place,
                       "array size unknown: a message is not trusted with it; use gradient.size, "
                       "parameters, or the size of an array of the message");
  }
  return value.node;
}

Thing Elaborator::indices(const Expression& operand) {
  const Thing thing = array(operand);
  if (thing.type.kind() != ScalarKind::kInt) {
    throw CompileError(operand.place,
                       fmt::format("indices are whole numbers, this is {}", describe(thing)));
  }
  return thing;
}

void Elaborator::be_general(const Place& place, const std::string& why) {
  if (program_.block >= 0) refuse_beside_blocks(place, why);
  if (general_) return;
  general_ = General{place, why};
  program_.quantizer = false;
  notes_.push_back(compll::describe(
      place, "note: ", fmt::format("this is no quantiser made in one pass: {}", why)));
}

Thing Elaborator::range(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 1, "range(n)");
  const NodeId length = whole_number(*call.operands[0]);
  const int over = values()[length].op == Op::kSize
                       ? 0
                       : domain({.kind = DomainKind::kRange, .node = length, .kept = {}});
  if (over != 0) be_general(call.place, "it has arrays of other lengths than the gradient's");
  return {.kind = ThingKind::kArray,
          .type = {TypeName::kInt},
          .node = values().element(Op::kIndex, ScalarKind::kInt, 0, over),
          .domain = over};
}

Thing Elaborator::map(const Expression& call) {
  require_program_scope(call);
  if (call.operands.size() < 2) {
    throw CompileError(call.place, "map is written map(a, f), or map(a, b, f) for several arrays");
  }
  std::vector<Thing> elements;
  for (std::size_t i = 0; i + 1 < call.operands.size(); ++i) {
    elements.push_back(array(*call.operands[i]));
    if (elements[i].domain != elements[0].domain) {
      throw CompileError(call.operands[i]->place,
                         "arrays that are mapped together come from the same elements; this one "
                         "has another length or order");
    }
    elements[i].kind = ThingKind::kScalar;
  }
  const Thing f = function(*call.operands.back());
  Thing result = apply_over(elements[0].domain, f, elements, call.place);
  result.kind = ThingKind::kArray;
  result.domain = elements[0].domain;
  return result;
}

Thing Elaborator::apply_over(int domain, const Thing& lambda, const std::vector<Thing>& arguments,
                             const Place& called) {
  const int outer = std::exchange(domain_, domain);
  Thing result = apply(lambda, arguments, called);
  domain_ = outer;
  return result;
}

Thing Elaborator::filter(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 2, "filter(a, f)");
  require_encoder(call);
  Thing from = array(*call.operands[0]);
  Thing element = from;
  element.kind = ThingKind::kScalar;
  const Thing f = function(*call.operands[1]);
  const Thing condition = convert(apply_over(from.domain, f, {element}, call.place),
                                  {TypeName::kBool}, call.operands[1]->place);
  be_general(call.place, "it selects elements");
  from.domain = domain(
      {.kind = DomainKind::kFilter, .source = from.domain, .node = condition.node, .kept = {}});
  from.node = kept(from.domain, from.node);
  return from;
}

Thing Elaborator::largest(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 2, "largest(a, n)");
  require_encoder(call);
  const Thing from = convert(array(*call.operands[0]), {TypeName::kFloat}, call.operands[0]->place);
  const NodeId count = whole_number(*call.operands[1]);
  be_general(call.place, "it selects elements");
  const int over = domain({.kind = DomainKind::kLargest,
                           .source = from.domain,
                           .node = from.node,
                           .count = count,
                           .kept = {}});
  const NodeId index = values().element(Op::kIndex, ScalarKind::kInt, 0, from.domain);
  return {.kind = ThingKind::kArray,
          .type = {TypeName::kInt},
          .node = kept(over, index),
          .domain = over};
}

Thing Elaborator::sort(const Expression& call) {
  require_program_scope(call);
  require_encoder(call);
  if (call.operands.size() != 1 && call.operands.size() != 2) {
    throw CompileError(call.place,
                       "sort is written sort(a), or sort(a, f) with f(x, y) x < y or x > y");
  }
  Thing from = array(*call.operands[0]);
  require_number(from, call.operands[0]->place);
  Domain made{.kind = DomainKind::kSorted, .source = from.domain, .node = from.node, .kept = {}};
  if (call.operands.size() == 2) made.descending = is_descending(*call.operands[1], from);
  be_general(call.place, "it sorts");
  from.domain = domain(made);
  from.node = kept(from.domain, from.node);
  return from;
}

bool Elaborator::is_descending(const Expression& operand, const Thing& from) {
  const Thing f = function(operand);
  const ScalarKind kind = from.type.kind();
  const Type type{kind == ScalarKind::kFloat ? TypeName::kFloat : TypeName::kInt};
  const Thing body = apply(
      f,
      {made(type, values().leaf(Op::kFirst, kind)), made(type, values().leaf(Op::kSecond, kind))},
      operand.place);
  const Node& node = values()[body.node];
  if (node.op == Op::kLess || node.op == Op::kLessEqual) {
    const Op left = values()[node.arguments[0]].op, right = values()[node.arguments[1]].op;
    if (left == Op::kFirst && right == Op::kSecond) return false;
    if (left == Op::kSecond && right == Op::kFirst) return true;
  }
  throw CompileError(operand.place,
                     "an order is x < y or x > y of the lambda's two values; put other arithmetic "
                     "into a map before it");
}

Thing Elaborator::sample(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 2, "sample(a, n)");
  require_encoder(call);
  Thing from = array(*call.operands[0]);
  const NodeId count = whole_number(*call.operands[1]);
  be_general(call.place, "it samples");
  // Takes one random element of each of `count` parts of the array.
  const int over = domain({.kind = DomainKind::kRange, .node = count, .kept = {}});
  const NodeId i = values().element(Op::kIndex, ScalarKind::kInt, 0, over);
  const NodeId one = values().integer(1), size = length(from.domain);
  const auto edge = [&](NodeId part) {
    return values().make(Op::kDivide, values().make(Op::kMultiply, part, size), count);
  };
  const NodeId begin = edge(i), end = edge(values().make(Op::kAdd, i, one));
  const NodeId width = values().make(Op::kMax, values().make(Op::kSubtract, end, begin), one);
  const NodeId index = values().make(Op::kAdd, begin, whole_below(width, draw_site(call, over)));
  from.node = at(from, index);
  from.domain = over;
  return from;
}

NodeId Elaborator::whole_below(NodeId width, NodeId draw) {
  const NodeId scaled = values().make(Op::kMultiply, draw, values().make(Op::kToFloat, width));
  return values().make(Op::kMin, values().make(Op::kToInt, scaled),
                       values().make(Op::kSubtract, width, values().integer(1)));
}

Thing Elaborator::gather(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 2, "gather(a, indices)");
  Thing from = array(*call.operands[0]);
  const Thing where = indices(*call.operands[1]);
  be_general(call.place, "it gathers");
  from.node = at(from, where.node);
  from.domain = where.domain;
  return from;
}

Thing Elaborator::scatter(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 3, "scatter(indices, values, n)");
  const Thing where = indices(*call.operands[0]);
  Thing what = array(*call.operands[1]);
  if (where.domain != what.domain) {
    throw CompileError(call.operands[1]->place,
                       "every index has its value: both arrays come from the same elements");
  }
  require_number(what, call.operands[1]->place);
  const NodeId size = whole_number(*call.operands[2]);
  be_general(call.place, "it scatters");
  const int target = values()[size].op == Op::kSize
                         ? 0
                         : domain({.kind = DomainKind::kRange, .node = size, .kept = {}});
  auto& scatters = program_.scatters;
  scatters.push_back({where.node, what.node, where.domain, target});
  what.node = values().element(Op::kScattered, values()[what.node].kind,
                               static_cast<std::int64_t>(scatters.size()) - 1, target);
  what.domain = target;
  return what;
}

Thing Elaborator::clear(const Expression& call) {
  require_program_scope(call);
  require_arguments(call, 2, "clear(a, indices)");
  Thing from = array(*call.operands[0]);
  require_number(from, call.operands[0]->place);
  const Thing where = indices(*call.operands[1]);
  be_general(call.place, "it clears elements");
  auto& marks = program_.marks;
  std::size_t number = 0;
  while (number < marks.size() &&
         (marks[number].index != where.node || marks[number].source != where.domain ||
          marks[number].target != from.domain)) {
    ++number;
  }
  if (number == marks.size()) marks.push_back({where.node, where.domain, from.domain});
  const NodeId among =
      values().element(Op::kIn, ScalarKind::kBool, static_cast<std::int64_t>(number), from.domain);
  const bool real = values()[from.node].kind == ScalarKind::kFloat;
  from.node = values().select(among, real ? values().real(0) : values().integer(0), from.node);
  return from;
}

void Elaborator::require_encoder(const Expression& call) {
  if (role_ == Role::kEncoder) return;
  throw CompileError(
      call.place,
      fmt::format("{} belongs in an encoder; a decoder maps, gathers and scatters its message",
                  call.name));
}

Thing Elaborator::reduce(const Expression& call) {
  require_program_scope(call);
  if (call.operands.size() == 4) return reduce_blocks(call);
  require_arguments(call, 3, "reduce(a, initial, f), or reduce(a, block, initial, f) for blocks");
  if (role_ != Role::kEncoder) {
    throw CompileError(call.place,
                       "a decoder has no gradient to reduce; reduce in the encoder and "
                       "send the result");
  }
  Thing elements = array(*call.operands[0]);
  const int over = elements.domain;
  elements.kind = ThingKind::kScalar;
  const Thing initial = scalar(*call.operands[1]);
  const Thing f = function(*call.operands[2]);
  if (f.lambda->parameters.size() != 2) {
    throw CompileError(call.operands[2]->place, "reduce takes a lambda of two values");
  }
  // The computation has the type of the lambda's first parameter; the others must agree with it.
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
  if (values().draws(body.node) || values().per_element(body.node)) {
    throw CompileError(call.operands[2]->place,
                       "reduce's lambda makes one value of two, nothing else; put what belongs to "
                       "an element into a map before it");
  }
  Reduction reduction{.kind = reduction_kind(body.node),
                      .element = convert(elements, type, call.operands[0]->place).node,
                      .initial = convert(initial, type, call.operands[1]->place).node,
                      .fold = body.node,
                      .domain = over,
                      .name = {}};
  if (reduction.kind == ReductionKind::kFold) {
    be_general(call.operands[2]->place,
               "this lambda is neither a sum (a + b) nor a minimum nor a maximum of floats");
  }
  if (over != 0) be_general(call.place, "it reduces other arrays than the gradient's");
  expect_element_code(reduction.element, call.operands[0]->place);
  finish(reduction, type, call);
  return made(type, add(reduction));
}

ReductionKind Elaborator::reduction_kind(NodeId body) {
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
  return ReductionKind::kFold;
}

void Elaborator::finish(Reduction& reduction, const Type& type, const Expression& call) {
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
    if (range.least < -kMaxWholeSum || range.most > kMaxWholeSum) {
      be_general(call.operands[0]->place,
                 "ints that are summed are not known to lie within 2^20 of 0 (counts, codes)");
    }
  }
}

NodeId Elaborator::add(const Reduction& reduction) {
  auto& reductions = program_.encoder->reductions;
  const auto number = static_cast<std::int64_t>(reductions.size());
  if (number >= 64) throw std::length_error("more than 64 reductions");
  // Equal reductions are shared.
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const Reduction& known = reductions[i];
    if (known.element == reduction.element && known.initial == reduction.initial &&
        known.fold == reduction.fold && known.domain == reduction.domain) {
      return values().leaf(Op::kReduction, values()[reduction.element].kind,
                           static_cast<std::int64_t>(i));
    }
  }
  values().set_reduction_passes(number, values().passes_before(reduction.element));
  reductions.push_back(reduction);
  return values().leaf(Op::kReduction, values()[reduction.element].kind, number);
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
  const bool whole = call.type.name == TypeName::kInt;
  if ((call.type.name != TypeName::kFloat && !whole) || call.type.array) {
    throw CompileError(call.place, "random numbers are floats or ints: random<float>(least, most)");
  }
  if (scope_ != Scope::kLambda) {
    throw CompileError(call.place, "random numbers are drawn per element, inside a lambda");
  }
  const Type type{call.type.name};
  const Thing least = convert(scalar(*call.operands[0]), type, call.operands[0]->place);
  const Thing most = convert(scalar(*call.operands[1]), type, call.operands[1]->place);
  const NodeId draw = draw_site(call, domain_);
  if (is_number(least.node, 0) && is_number(most.node, 1)) return made(type, draw);
  const NodeId width = values().make(Op::kSubtract, most.node, least.node);
  const NodeId above = whole
                           ? whole_below(values().make(Op::kMax, width, values().integer(1)), draw)
                           : values().make(Op::kMultiply, draw, width);
  return made(type, values().make(Op::kAdd, least.node, above));
}

NodeId Elaborator::draw_site(const Expression& call, int domain) {
  const auto [site, is_new] =
      sites_.try_emplace({&call, path_}, static_cast<std::int64_t>(sites_.size()));
  return values().element(Op::kDraw, ScalarKind::kFloat, site->second, domain);
}

bool Elaborator::is_number(NodeId node, double value) {
  return values()[node].op == Op::kReal && values()[node].real == value;
}

Thing Elaborator::bits(const Expression& call) {
  require_arguments(call, 1, "bits(x)");
  const Thing value = scalar(*call.operands[0]);
  require_number(value, call.operands[0]->place);
  const Thing real = convert(value, {TypeName::kFloat}, call.operands[0]->place);
  return made({TypeName::kInt}, values().make(Op::kBits, real.node));
}

Thing Elaborator::float_of_bits(const Expression& call) {
  require_arguments(call, 1, "float_of_bits(n)");
  const Thing value = scalar(*call.operands[0]);
  require_number(value, call.operands[0]->place);
  const Thing whole = convert(value, {TypeName::kInt}, call.operands[0]->place);
  return made({TypeName::kFloat}, values().make(Op::kFloatOfBits, whole.node));
}

Thing Elaborator::not_here(const Expression& call) {
  throw CompileError(call.place,
                     call.name == "concat"
                         ? "concat makes the message: compressed = concat(…);"
                         : "extract is a statement of its own: extract(compressed, …);");
}

}  // namespace hipress::compll
