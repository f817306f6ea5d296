// What statements do to variables and to the message.

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

namespace {

/// A bound on the work that inlining can make; far above what any algorithm needs.
constexpr int kMostSteps = 1000000;

}  // namespace

// ---- statements ----

void Elaborator::run(const ast::Block& block, Flow& flow) {
  const std::size_t known = variables_.size();
  for (const Statement& statement : block) run(statement, flow);
  // Names end with their block; at program level they stay, for nobody else can see them.
  if (level_ != Level::kProgram) variables_.resize(std::max(known, floor_));
}

void Elaborator::step(const Place& place) {
  if (++steps_ > kMostSteps) {
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
    if (level_ != Level::kProgram) {
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
  if (role_ != Role::kEncoder || level_ != Level::kProgram || statement.name != gradient_) {
    throw CompileError(statement.place,
                       "error_feedback stands in an encoder and names its "
                       "gradient");
  }
  program_.encoder->error_feedback = true;
}

void Elaborator::run_assignment(const Statement& statement) {
  if (statement.name == message_ && role_ != Role::kHelper && level_ == Level::kProgram) {
    return assign_message(statement);
  }
  Variable& variable = find(statement.name, statement.place);
  if (variable.value.kind == ThingKind::kLambda || variable.value.kind == ThingKind::kMessage) {
    throw CompileError(statement.place, fmt::format("'{}' is {} and cannot be assigned to",
                                                    statement.name, describe(variable.value)));
  }
  const std::size_t index = static_cast<std::size_t>(&variable - variables_.data());
  if (level_ == Level::kLambda && index < floor_) {
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
  if (level_ != Level::kProgram || statement.op != "=") {
    throw CompileError(statement.place, "an array is assigned once, outside branches and lambdas");
  }
  if (variables_[index].value.kind == ThingKind::kArray) {
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
  variables_[index].value = value;
  if (role_ == Role::kDecoder && statement.name == gradient_) {
    require_element_code(value.node, statement.value->place);
    if (values().draws(value.node)) {
      throw CompileError(statement.value->place,
                         "a decoder draws no random numbers: all nodes must decode the same");
    }
    program_.decoder->level = value.node;
  }
}

void Elaborator::run_if(const Statement& statement, Flow& flow) {
  const Thing condition = scalar(*statement.value);
  if (condition.type.kind() != ScalarKind::kBool) {
    convert(condition, {TypeName::kBool}, statement.value->place);
  }
  const Level before = level_;
  if (level_ == Level::kProgram) level_ = Level::kBranch;
  const std::vector<Variable> start = variables_;
  Flow yes_flow = flow, no_flow = flow;
  run(statement.body, yes_flow);
  std::vector<Variable> yes = std::move(variables_);
  variables_ = start;
  run(statement.otherwise, no_flow);
  level_ = before;
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
  if (level_ != Level::kLambda) {
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
    throw CompileError(statement.place, "what this returns is lost; assign it to a variable");
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
  if (encoder.code >= 0) {
    throw CompileError(statement.place, "the message has been written already");
  }
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Expression& operand = *call.operands[i];
    const Thing thing = evaluate(operand);
    if (thing.kind == ThingKind::kScalar) {
      encoder.fields.push_back(field(thing.type, operand));
      encoder.field_values.push_back(thing.node);
      continue;
    }
    if (thing.kind != ThingKind::kArray || !thing.type.clamps() || encoder.code >= 0) {
      throw CompileError(operand.place, "a message holds scalars and one array of uint<bits>");
    }
    require_element_code(thing.node, operand.place);
    if (values().by_slice(thing.type.bits)) {
      throw CompileError(operand.place,
                         "the bits of a code depend on parameters only, so that every message of "
                         "a slice is equally long");
    }
    encoder.bits = thing.type.bits;
    encoder.code = thing.node;
  }
  if (encoder.code < 0) {
    throw CompileError(call.place,
                       "a message holds one array of uint<bits>: a code for every "
                       "element");
  }
  bound_bits(call);
}

void Elaborator::bound_bits(const Expression& call) {
  const Values::Range bits = values().range(program_.encoder->bits);
  if (bits.least >= 1 && bits.most <= 8) return;
  const Node& node = values()[program_.encoder->bits];
  if (node.op != Op::kParameter || bits.most < 1 || bits.least > 8) {
    throw CompileError(call.place,
                       "a code has 1 to 8 bits; give the parameters that decide it a "
                       "range: uint8 b = 2 in [1, 8]");
  }
  ProgramParameter& parameter = program_.parameters[static_cast<std::size_t>(node.integer)];
  parameter.least = std::max(parameter.least, 1.0);
  parameter.most = std::min(parameter.most, 8.0);
  notes_.push_back(
      compll::describe(call.place, "note: ",
                       fmt::format("'{}' is the number of bits of a code: it is held to {} … {}",
                                   parameter.name, parameter.least, parameter.most)));
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
  if (role_ != Role::kDecoder || level_ != Level::kProgram) {
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
    if (decoder.bits >= 0) {
      throw CompileError(operand.place, "the array of codes is the last part of a message");
    }
    const Type type = scalar_type(variable.declared);
    variable.type = type;
    if (variable.declared.array) {
      if (!type.clamps()) {
        throw CompileError(operand.place, "the array of a message is one of uint<bits>");
      }
      decoder.bits = type.bits;
      variable.value = {.kind = ThingKind::kArray,
                        .type = type,
                        .node = values().leaf(Op::kCode, ScalarKind::kInt)};
      continue;
    }
    const auto index = static_cast<std::int64_t>(decoder.fields.size());
    decoder.fields.push_back(field(type, operand));
    const NodeId node = values().leaf(Op::kField, type.kind(), index);
    variable.value = {.kind = ThingKind::kScalar, .type = type, .node = converted(node, type)};
    values().name(variable.value.node, operand.name);
  }
  if (decoder.bits < 0) {
    throw CompileError(call.place, "the last part of a message is its array of uint<bits>");
  }
}

}  // namespace hipress::compll
