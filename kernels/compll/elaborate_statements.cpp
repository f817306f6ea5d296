// Executes statements symbolically: sets variables and states, writes and reads messages.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

namespace {

/// Maximum number of statements and expressions after inlining. Real algorithms need far fewer.
constexpr int kMaxSteps = 500000;
constexpr std::size_t kMaxParts = 16;

}  // namespace

// ---- statements ----

void Elaborator::run(const ast::Block& block, Flow& flow) {
  const std::size_t known = variables_.size();
  for (const Statement& statement : block) run(statement, flow);
  // Variables end with their block, except in the program's own scope.
  if (scope_ != Scope::kProgram) variables_.resize(std::max(known, floor_));
}

void Elaborator::step(const Place& place) {
  if (++steps_ > kMaxSteps) {
    throw CompileError(place, "the program is too large once its functions are inlined");
  }
}

void Elaborator::run(const Statement& statement, Flow& flow) {
  step(statement.place);
  try {
    switch (statement.kind) {
      case StatementKind::kDeclare:
        return run_declaration(statement);
      case StatementKind::kFeedback:
        return run_feedback(statement);
      case StatementKind::kState:
        return run_state(statement);
      case StatementKind::kAssign:
        return run_assignment(statement);
      case StatementKind::kIf:
        return run_if(statement, flow);
      case StatementKind::kReturn:
        return run_return(statement, flow);
      case StatementKind::kCall:
        return run_call(statement);
      case StatementKind::kBlock:
        return run(statement.body, flow);
    }
  } catch (const std::length_error& error) {
    throw CompileError(statement.place, error.what());
  }
}

void Elaborator::run_declaration(const Statement& statement) {
  Thing value;
  if (statement.type.name == TypeName::kLambda) {
    if (statement.value == nullptr || statement.value->kind != ExpressionKind::kLambda) {
      throw CompileError(statement.place,
                         "a lambda_func is declared with its lambda: "
                         "lambda_func f = [&](float a) { … }");
    }
    value = lambda(*statement.value);
    return declare(statement.name, statement.type, value, statement.place);
  }
  if (statement.type.name == TypeName::kVoid) {
    throw CompileError(statement.type.place, "void is no type of a value");
  }
  if (statement.value != nullptr) value = initial_value(statement);
  declare(statement.name, statement.type, value, statement.place);
  if (value.node >= 0) values().name(value.node, statement.name);
}

Thing Elaborator::initial_value(const Statement& statement) {
  Thing value = evaluate(*statement.value);
  const Type type = scalar_type(statement.type);
  if (statement.type.array) {
    if (scope_ != Scope::kProgram) {
      throw CompileError(statement.place,
                         "arrays are declared in the encoder or decoder itself, "
                         "outside branches and lambdas");
    }
    if (value.kind != ThingKind::kArray) {
      throw CompileError(statement.value->place,
                         "this is one value, an array is declared; make one with map(range(n), "
                         "f)");
    }
  } else if (value.kind != ThingKind::kScalar) {
    throw CompileError(statement.value->place, fmt::format("this is {}, one {} is declared",
                                                           describe(value), name_of(type.name)));
  }
  return convert(value, type, statement.value->place);
}

std::string Elaborator::describe(const Thing& thing) {
  switch (thing.kind) {
    case ThingKind::kUnset:
      return "nothing";
    case ThingKind::kScalar:
      return "one " + name_of(thing.type.name);
    case ThingKind::kArray:
      return "an array of " + name_of(thing.type.name);
    case ThingKind::kLambda:
      return "a lambda";
    case ThingKind::kMessage:
      return "the message";
  }
  return "?";
}

void Elaborator::run_feedback(const Statement& statement) {
  if (role_ != Role::kEncoder || scope_ != Scope::kProgram || statement.name != gradient_) {
    throw CompileError(statement.place,
                       "error_feedback stands in an encoder and names its "
                       "gradient");
  }
  if (reads_gradient_) {
    throw CompileError(statement.place,
                       fmt::format("'{}' has been read already, without its residual; put "
                                   "error_feedback first",
                                   gradient_));
  }
  program_.encoder->error_feedback = true;
}

void Elaborator::run_state(const Statement& statement) {
  if (role_ != Role::kEncoder || scope_ != Scope::kProgram) {
    throw CompileError(statement.place,
                       "an encoder keeps state; declare it there, outside branches and lambdas");
  }
  if (statement.type.name != TypeName::kFloat || !statement.type.array) {
    throw CompileError(statement.type.place, "state between steps is a float* array");
  }
  auto& states = program_.encoder->states;
  if (states.size() == 8) throw CompileError(statement.place, "more than 8 arrays are kept");
  const NodeId node =
      values().element(Op::kState, ScalarKind::kFloat, static_cast<std::int64_t>(states.size()));
  values().name(node, statement.name);
  states.push_back({statement.name, node});
  declare(statement.name, statement.type,
          {.kind = ThingKind::kArray, .type = {TypeName::kFloat}, .node = node}, statement.place);
  be_general(statement.place, "it keeps arrays of its own");
}

bool Elaborator::is_state(const std::string& name) const {
  if (role_ != Role::kEncoder) return false;
  const auto& states = program_.encoder->states;
  return std::any_of(states.begin(), states.end(),
                     [&](const StateArray& state) { return state.name == name; });
}

void Elaborator::run_assignment(const Statement& statement) {
  if (statement.name == message_ && role_ != Role::kHelper && scope_ == Scope::kProgram) {
    return assign_message(statement);
  }
  Variable& variable = find(statement.name, statement.place);
  if (variable.value.kind == ThingKind::kLambda || variable.value.kind == ThingKind::kMessage) {
    throw CompileError(statement.place, fmt::format("'{}' is {} and cannot be assigned to",
                                                    statement.name, describe(variable.value)));
  }
  const std::size_t index = static_cast<std::size_t>(&variable - variables_.data());
  if (scope_ == Scope::kLambda && index < floor_) {
    throw CompileError(statement.place, fmt::format("a lambda cannot change '{}', which is "
                                                    "outside of it",
                                                    statement.name));
  }
  if (variable.declared.array) return assign_array(statement, index);
  Thing value = scalar(*statement.value);
  if (statement.op != "=") {
    const Thing before = read(variables_[index], statement.place);
    value = binary(statement.op.substr(0, 1), before, value, statement.place);
  }
  variables_[index].type = scalar_type(variables_[index].declared);
  value = convert(value, variables_[index].type, statement.value->place);
  if (locked_.contains(index)) {
    throw CompileError(statement.place,
                       fmt::format("'{}' has been used by a lambda, which would see another "
                                   "value from here on; take another name",
                                   statement.name));
  }
  variables_[index].value = value;
  values().name(value.node, statement.name);
}

void Elaborator::assign_array(const Statement& statement, std::size_t index) {
  if (scope_ != Scope::kProgram || statement.op != "=") {
    throw CompileError(statement.place, "an array is assigned once, outside branches and lambdas");
  }
  const bool kept = is_state(statement.name);
  if (variables_[index].value.kind == ThingKind::kArray && !kept) {
    throw CompileError(
        statement.place,
        fmt::format("array '{}' has its value already; take another name", statement.name));
  }
  Thing value = evaluate(*statement.value);
  if (value.kind != ThingKind::kArray) {
    throw CompileError(statement.value->place, fmt::format("this is {}, '{}' is an array",
                                                           describe(value), statement.name));
  }
  variables_[index].type = scalar_type(variables_[index].declared);
  value = convert(value, variables_[index].type, statement.value->place);
  if (kept || (role_ == Role::kDecoder && statement.name == gradient_)) {
    if (program_.length_domain(value.domain) != 0) {
      throw CompileError(
          statement.value->place,
          fmt::format("'{}' is as long as the gradient, this array is not", statement.name));
    }
  }
  if (kept) {
    value.node = saturated(value.node);
    for (StateArray& state : program_.encoder->states) {
      if (state.name == statement.name) state.next = value.node;
    }
  }
  values().name(value.node, statement.name);
  variables_[index].value = value;
  if (role_ == Role::kDecoder && statement.name == gradient_) {
    expect_element_code(value.node, statement.value->place);
    if (values().draws(value.node)) {
      throw CompileError(statement.value->place,
                         "a decoder draws no random numbers: all nodes must decode the same");
    }
    program_.decoder->level = value.node;
  }
}

NodeId Elaborator::saturated(NodeId node) {
  const Node& at = values()[node];
  const NodeId largest = values().real(kLargestFloat), least = values().real(-kLargestFloat);
  const bool is_already = at.op == Op::kMax && at.arguments[1] == least &&
                          values()[at.arguments[0]].op == Op::kMin &&
                          values()[at.arguments[0]].arguments[1] == largest;
  if (is_already || at.op == Op::kState || at.op == Op::kReal) return node;
  if (at.op == Op::kSelect && values()[at.arguments[0]].op == Op::kIn) {
    const Node select = at;
    return values().select(select.arguments[0], saturated(select.arguments[1]),
                           saturated(select.arguments[2]));
  }
  return values().make(Op::kMax, values().make(Op::kMin, node, largest), least);
}

void Elaborator::run_if(const Statement& statement, Flow& flow) {
  const Thing condition = scalar(*statement.value);
  if (condition.type.kind() != ScalarKind::kBool) {
    convert(condition, {TypeName::kBool}, statement.value->place);
  }
  const Scope before = scope_;
  if (scope_ == Scope::kProgram) scope_ = Scope::kBranch;
  const std::vector<Variable> start = variables_;
  Flow yes_flow = flow, no_flow = flow;
  run(statement.body, yes_flow);
  std::vector<Variable> yes = std::move(variables_);
  variables_ = start;
  run(statement.otherwise, no_flow);
  scope_ = before;
  steps_ += static_cast<int>(start.size() / 16);
  for (std::size_t i = 0; i < start.size(); ++i) {
    Thing& no_value = variables_[i].value;
    const Thing& yes_value = yes[i].value;
    if (no_value.kind == ThingKind::kUnset || yes_value.kind == ThingKind::kUnset) {
      no_value = {};
    } else if (no_value.kind == ThingKind::kScalar) {
      no_value.node = values().select(condition.node, yes_value.node, no_value.node);
    }
  }
  merge(condition.node, yes_flow, no_flow, flow, statement.place);
}

void Elaborator::merge(NodeId condition, const Flow& yes, const Flow& no, Flow& flow,
                       const Place& place) {
  if (yes.returned < 0 && no.returned < 0) return;
  const auto returned = [&](const Flow& f) {
    return f.returned < 0 ? values().boolean(false) : f.returned;
  };
  flow.returned = values().select(condition, returned(yes), returned(no));
  if (yes.result.node < 0 || no.result.node < 0) {
    flow.result = yes.result.node < 0 ? no.result : yes.result;
    return;
  }
  flow.result = common(yes.result, no.result, condition, place);
}

Thing Elaborator::common(const Thing& yes, const Thing& no, NodeId condition, const Place& place) {
  Type type = yes.type;
  if (yes.type.name != no.type.name || yes.type.bits != no.type.bits) {
    const bool real = yes.type.kind() == ScalarKind::kFloat || no.type.kind() == ScalarKind::kFloat;
    type = {real ? TypeName::kFloat : TypeName::kInt};
    if (yes.type.kind() == ScalarKind::kBool || no.type.kind() == ScalarKind::kBool) {
      type = {TypeName::kBool};
    }
  }
  const Thing a = convert(yes, type, place), b = convert(no, type, place);
  return {
      .kind = ThingKind::kScalar, .type = type, .node = values().select(condition, a.node, b.node)};
}

void Elaborator::run_return(const Statement& statement, Flow& flow) {
  if (scope_ != Scope::kLambda) {
    throw CompileError(statement.place,
                       "an encoder or decoder runs to its end; its result is "
                       "assigned to its second parameter");
  }
  if (statement.value == nullptr) {
    throw CompileError(statement.place, "a value must be returned here");
  }
  Thing value = scalar(*statement.value);
  if (result_type_ != nullptr) value = convert(value, *result_type_, statement.value->place);
  if (flow.returned < 0 || flow.result.node < 0) {
    flow.result = value;
  } else {
    flow.result = common(flow.result, value, flow.returned, statement.place);
  }
  flow.returned = values().boolean(true);
}

void Elaborator::run_call(const Statement& statement) {
  if (statement.value->name != "extract") {
    throw CompileError(statement.place, "the returned value is lost; assign it to a variable");
  }
  extract(*statement.value);
}

// ---- messages ----

void Elaborator::assign_message(const Statement& statement) {
  const Expression& call = *statement.value;
  if (role_ == Role::kDecoder) {
    throw CompileError(statement.place, "a decoder reads its message, it does not write it");
  }
  if (statement.op != "=" || call.kind != ExpressionKind::kCall || call.name != "concat") {
    throw CompileError(call.place,
                       fmt::format("a message is made by concat: {} = concat(…);", message_));
  }
  Encoder& encoder = *program_.encoder;
  if (!encoder.parts.empty()) {
    throw CompileError(statement.place, "the message has been written already");
  }
  std::vector<const Expression*> arrays;
  for (const auto& operand : call.operands) {
    const Thing thing = evaluate(*operand);
    if (thing.kind == ThingKind::kScalar) {
      encoder.fields.push_back(field(thing.type, *operand));
      encoder.field_values.push_back(thing.node);
    } else if (thing.kind == ThingKind::kArray) {
      if (encoder.parts.size() == kMaxParts) {
        throw CompileError(operand->place, "a message holds at most 16 arrays");
      }
      encoder.parts.push_back(part(thing, *operand));
      arrays.push_back(operand.get());
    } else {
      throw CompileError(
          operand->place,
          fmt::format("a message holds scalars and arrays, this is {}", describe(thing)));
    }
  }
  if (arrays.empty()) {
    throw CompileError(call.place, "a message without an array carries no elements");
  }
  if (program_.block >= 0) {
    take_blocks(arrays);
  } else if (encoder.parts.size() > 1) {
    be_general(call.place, "its message has several arrays");
  } else if (take_code(encoder.parts[0], *arrays[0])) {
    encoder.code = encoder.parts[0].value;
    encoder.bits = encoder.parts[0].bits;
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Part& part = encoder.parts[i];
    if (part.kind == FieldKind::kWord && !bound_bits(part.bits, 32, *arrays[i])) {
      throw CompileError(arrays[i]->place,
                         "a uint of a message has 1 to 32 bits; give the parameters that decide "
                         "it a range: uint8 b = 2 in [1, 32]");
    }
  }
}

Part Elaborator::part(const Thing& array, const Expression& operand) {
  const Field like = field(array.type, operand);
  Part part{.kind = like.kind,
            .domain = array.domain,
            .bits = array.type.bits,
            .value = array.node,
            .name = like.name};
  if (array.type.clamps() && values().by_slice(part.bits)) {
    throw CompileError(operand.place,
                       "the bits of a code depend on parameters only, so that every message of "
                       "a slice is equally long");
  }
  require_bound(array.domain, operand.place);
  return part;
}

bool Elaborator::take_code(const Part& part, const Expression& operand) {
  if (part.domain != 0 || (part.kind != FieldKind::kByte && part.kind != FieldKind::kWord)) {
    be_general(operand.place, "its message is no array of uint<bits> for every element");
    return false;
  }
  if (!bound_bits(part.bits, 8, operand)) {
    be_general(operand.place, "its codes have more than 8 bits");
    return false;
  }
  expect_element_code(part.value, operand.place);
  return program_.quantizer;
}

bool Elaborator::bound_bits(NodeId id, std::int64_t most, const Expression& operand) {
  const Values::Range bits = values().range(id);
  if (bits.least >= 1 && bits.most <= most) return true;
  const Node& node = values()[id];
  if (node.op != Op::kParameter || bits.most < 1 || bits.least > most) return false;
  ProgramParameter& parameter = program_.parameters[static_cast<std::size_t>(node.integer)];
  const double least = std::max(parameter.least, 1.0);
  const double held = std::min(parameter.most, static_cast<double>(most));
  if (least == parameter.least && held == parameter.most) return true;
  if (parameter.value && !(*parameter.value >= least && *parameter.value <= held)) return false;
  parameter.least = least;
  parameter.most = held;
  values().hold_parameter(node.integer, {static_cast<std::int64_t>(std::ceil(least)),
                                         static_cast<std::int64_t>(std::floor(held))});
  notes_.push_back(
      compll::describe(operand.place, "note: ",
                       fmt::format("'{}' is the number of bits of a code: it is held to {} … {}",
                                   parameter.name, parameter.least, parameter.most)));
  return true;
}

void Elaborator::require_bound(int domain, const Place& place) {
  while (domain != 0) {
    const Domain& at = program_.domains[static_cast<std::size_t>(domain)];
    if (at.kind == DomainKind::kLargest && !values().measured(at.count)) return;
    if (at.kind == DomainKind::kRange) {
      if (!values().measured(at.node)) return;
      throw CompileError(place,
                         "array size unknown: in a message it must follow from gradient.size and "
                         "the parameters, so that there is room for it");
    }
    domain = at.source;
  }
}

Field Elaborator::field(const Type& type, const Expression& operand) {
  const std::string name = operand.kind == ExpressionKind::kName ? operand.name : "";
  switch (type.name) {
    case TypeName::kFloat:
      return {FieldKind::kFloat, name};
    case TypeName::kInt:
      return {FieldKind::kInt, name};
    case TypeName::kUint8:
      return {FieldKind::kByte, name};
    case TypeName::kUint:
      return {FieldKind::kWord, name};
    default:
      throw CompileError(operand.place, "a condition cannot be sent; send c ? 1 : 0");
  }
}

void Elaborator::extract(const Expression& call) {
  if (role_ != Role::kDecoder || scope_ != Scope::kProgram) {
    throw CompileError(call.place, "extract stands in a decoder, outside branches and lambdas");
  }
  if (call.operands.empty() || call.operands[0]->kind != ExpressionKind::kName ||
      call.operands[0]->name != message_) {
    throw CompileError(call.place,
                       fmt::format("extract begins with the message: extract({}, …)", message_));
  }
  Decoder& decoder = *program_.decoder;
  for (std::size_t i = 1; i < call.operands.size(); ++i) {
    const Expression& operand = *call.operands[i];
    if (operand.kind != ExpressionKind::kName) {
      throw CompileError(operand.place, "extract gives values to variables, named here");
    }
    Variable& variable = find(operand.name, operand.place);
    if (variable.value.kind != ThingKind::kUnset || operand.name == gradient_) {
      throw CompileError(
          operand.place,
          fmt::format("'{}' has a value already; declare a variable without one", operand.name));
    }
    const Type type = scalar_type(variable.declared);
    variable.type = type;
    if (variable.declared.array) {
      variable.value = extract_array(type, operand);
      continue;
    }
    const auto index = static_cast<std::int64_t>(decoder.fields.size());
    decoder.fields.push_back(field(type, operand));
    const NodeId node = values().leaf(Op::kField, type.kind(), index);
    variable.value = {.kind = ThingKind::kScalar, .type = type, .node = converted(node, type)};
    values().name(variable.value.node, operand.name);
  }
  if (decoder.parts.empty()) {
    throw CompileError(call.place, "a message has an array; name a variable for it");
  }
}

Thing Elaborator::extract_array(const Type& type, const Expression& operand) {
  Decoder& decoder = *program_.decoder;
  const std::size_t number = decoder.parts.size();
  if (number == kMaxParts) {
    throw CompileError(operand.place, "a message holds at most 16 arrays");
  }
  const Field like = field(type, operand);
  Part part{.kind = like.kind, .domain = 0, .bits = type.bits, .value = -1, .name = like.name};
  // The array has the length of the encoder's array at the same position in the message.
  if (program_.encoder && number < program_.encoder->parts.size()) {
    const int theirs = program_.length_domain(program_.encoder->parts[number].domain);
    const auto [known, is_new] = extracted_.try_emplace(theirs, 0);
    if (is_new && theirs != 0) {
      known->second = domain({.kind = DomainKind::kExtracted, .source = theirs, .kept = {}});
    }
    part.domain = known->second;
  }
  decoder.parts.push_back(part);
  const bool first = program_.block >= 0 ? part.domain == 0 : number == 0;
  const bool code = type.clamps() && first && program_.quantizer;
  if (code) decoder.bits = type.bits;
  const NodeId node = code ? values().element(Op::kCode, ScalarKind::kInt)
                           : values().element(Op::kPart, type.kind(),
                                              static_cast<std::int64_t>(number), part.domain);
  values().name(node, operand.name);
  return {.kind = ThingKind::kArray, .type = type, .node = node, .domain = part.domain};
}

}  // namespace hipress::compll
