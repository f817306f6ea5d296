// Evaluates expressions, lambdas and helper functions.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "kernels/compll/elaborator.hpp"

namespace hipress::compll {

namespace {

constexpr int kMaxCalls = 100;  ///< maximal depth of nested calls

}  // namespace

// ---- expressions ----

Thing Elaborator::scalar(const Expression& expression) {
  Thing thing = evaluate(expression);
  if (thing.kind != ThingKind::kScalar) {
    throw CompileError(expression.place,
                       fmt::format("this is {}, one value is needed", describe(thing)));
  }
  return thing;
}

Thing Elaborator::made(Type type, NodeId node) {
  return {.kind = ThingKind::kScalar, .type = type, .node = node};
}

Thing Elaborator::evaluate(const Expression& expression) {
  step(expression.place);
  Thing thing = value_of(expression);
  if (thing.kind == ThingKind::kScalar) places_.emplace(thing.node, expression.place);
  return thing;
}

Thing Elaborator::value_of(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::kInteger:
      return made({TypeName::kInt}, values().integer(expression.integer));
    case ExpressionKind::kReal:
      return made({TypeName::kFloat}, values().real(expression.real));
    case ExpressionKind::kBoolean:
      return made({TypeName::kBool}, values().boolean(expression.integer != 0));
    case ExpressionKind::kName:
      return read_name(expression);
    case ExpressionKind::kUnary:
      return unary(expression);
    case ExpressionKind::kBinary:
      return binary(expression.name, scalar(*expression.operands[0]),
                    scalar(*expression.operands[1]), expression.place);
    case ExpressionKind::kChoice: {
      const Thing condition = convert(scalar(*expression.operands[0]), {TypeName::kBool},
                                      expression.operands[0]->place);
      const Thing yes = scalar(*expression.operands[1]), no = scalar(*expression.operands[2]);
      return common(yes, no, condition.node, expression.place);
    }
    case ExpressionKind::kCast: {
      if (expression.operands.size() != 1 || expression.type.array) {
        throw CompileError(expression.place, "a conversion takes one value: float(x)");
      }
      return convert(scalar(*expression.operands[0]), scalar_type(expression.type),
                     expression.operands[0]->place);
    }
    case ExpressionKind::kElement:
      return element(expression);
    case ExpressionKind::kSize:
      return size(expression);
    case ExpressionKind::kLambda:
      return lambda(expression);
    case ExpressionKind::kCall:
      return call(expression);
  }
  throw std::logic_error("an expression of no kind");
}

Thing Elaborator::read_name(const Expression& expression) {
  Variable& variable = find(expression.name, expression.place);
  const std::size_t index = static_cast<std::size_t>(&variable - variables_.data());
  if (scope_ == Scope::kLambda && index < floor_) {
    if (captures_ == Captures::kNone) {
      throw CompileError(
          expression.place,
          fmt::format("this lambda captures nothing; write [&] to use '{}'", expression.name));
    }
    if (variable.value.kind == ThingKind::kArray) {
      throw CompileError(expression.place,
                         fmt::format("inside a lambda an array is read element by element: {}[i]",
                                     expression.name));
    }
    locked_.insert(index);
  }
  return read(variable, expression.place);
}

Thing Elaborator::read(const Variable& variable, const Place& place) {
  if (variable.value.kind == ThingKind::kUnset) {
    throw CompileError(
        place, fmt::format("'{}' is read before it has a value on every path", variable.name));
  }
  const Thing& value = variable.value;
  if (value.kind == ThingKind::kArray && values()[value.node].op == Op::kGradient) {
    reads_gradient_ = true;
  }
  return value;
}

Thing Elaborator::element(const Expression& expression) {
  const Expression& array = *expression.operands[0];
  if (array.kind != ExpressionKind::kName) {
    throw CompileError(array.place, "name the array before reading its elements");
  }
  const Thing thing = read(find(array.name, array.place), array.place);
  if (thing.kind != ThingKind::kArray) {
    throw CompileError(array.place,
                       fmt::format("'{}' is {}, not an array", array.name, describe(thing)));
  }
  const Thing index = scalar(*expression.operands[1]);
  if (index.type.kind() != ScalarKind::kInt) {
    throw CompileError(expression.operands[1]->place, "an index is a whole number; write int(x)");
  }
  const NodeId node = at(thing, index.node);
  if (values()[node].op == Op::kAt) be_general(expression.place, "it reads elements elsewhere");
  return made(thing.type, node);
}

Thing Elaborator::size(const Expression& expression) {
  const Expression& array = *expression.operands[0];
  if (array.kind == ExpressionKind::kName) {
    const Variable& variable = find(array.name, array.place);
    if (variable.value.kind == ThingKind::kMessage) {
      throw CompileError(expression.place,
                         "a message's length is the runtime's; sizes come from the gradient");
    }
    if (!variable.declared.array) {
      throw CompileError(array.place, fmt::format("'{}' is no array", array.name));
    }
    if (array.name == gradient_) return made({TypeName::kInt}, length(0));
    if (variable.value.kind == ThingKind::kUnset) {
      throw CompileError(expression.place,
                         fmt::format("array size unknown: '{}' has no value yet", array.name));
    }
  }
  const Thing thing = evaluate_array(array);
  return made({TypeName::kInt}, length(thing.domain));
}

Thing Elaborator::evaluate_array(const Expression& expression) {
  // Does not call read_name(), which refuses arrays inside lambdas: their sizes may be read there.
  const Thing thing = expression.kind == ExpressionKind::kName
                          ? read(find(expression.name, expression.place), expression.place)
                          : evaluate(expression);
  if (thing.kind != ThingKind::kArray) throw CompileError(expression.place, "this is no array");
  return thing;
}

Thing Elaborator::unary(const Expression& expression) {
  const Thing value = scalar(*expression.operands[0]);
  const std::string& op = expression.name;
  if (op == "!") {
    const Thing condition = convert(value, {TypeName::kBool}, expression.operands[0]->place);
    return made({TypeName::kBool}, values().make(Op::kNot, condition.node));
  }
  require_number(value, expression.operands[0]->place);
  if (op == "+") return value;
  const bool real = value.type.kind() == ScalarKind::kFloat;
  if (op == "-") {
    return made({real ? TypeName::kFloat : TypeName::kInt}, values().make(Op::kNegate, value.node));
  }
  if (real) throw CompileError(expression.place, "'~' turns the bits of an int");
  return made({TypeName::kInt}, values().make(Op::kNot, value.node));
}

void Elaborator::require_number(const Thing& thing, const Place& place) {
  if (thing.type.kind() == ScalarKind::kBool) {
    throw CompileError(place, "this is a condition, a number is needed; write c ? 1 : 0");
  }
}

Thing Elaborator::binary(const std::string& op, Thing a, Thing b, const Place& place) {
  if (op == "&&" || op == "||") {
    const Type condition{TypeName::kBool};
    a = convert(a, condition, place);
    b = convert(b, condition, place);
    return made(condition, values().make(op == "&&" ? Op::kAnd : Op::kOr, a.node, b.node));
  }
  require_number(a, place);
  require_number(b, place);
  const bool real = a.type.kind() == ScalarKind::kFloat || b.type.kind() == ScalarKind::kFloat;
  const Type type{real ? TypeName::kFloat : TypeName::kInt};
  static const std::map<std::string, Op> kWhole = {{"%", Op::kRemainder},  {"&", Op::kAnd},
                                                   {"|", Op::kOr},         {"^", Op::kXor},
                                                   {"<<", Op::kShiftLeft}, {">>", Op::kShiftRight}};
  const auto whole = kWhole.find(op);
  if (whole != kWhole.end() && real) {
    throw CompileError(place, fmt::format("'{}' takes whole numbers; write int(x)", op));
  }
  const NodeId x = converted(a.node, type), y = converted(b.node, type);
  if (whole != kWhole.end()) return made(type, values().make(whole->second, x, y));
  const auto compared = [&](Op operation, NodeId left, NodeId right) {
    return made({TypeName::kBool}, values().make(operation, left, right));
  };
  if (op == "<") return compared(Op::kLess, x, y);
  if (op == ">") return compared(Op::kLess, y, x);
  if (op == "<=") return compared(Op::kLessEqual, x, y);
  if (op == ">=") return compared(Op::kLessEqual, y, x);
  if (op == "==") return compared(Op::kEqual, x, y);
  if (op == "!=") {
    return made({TypeName::kBool}, values().make(Op::kNot, values().make(Op::kEqual, x, y)));
  }
  const Op operation = op == "+"   ? Op::kAdd
                       : op == "-" ? Op::kSubtract
                       : op == "*" ? Op::kMultiply
                                   : Op::kDivide;
  return made(type, values().make(operation, x, y));
}

// ---- lambdas and calls ----

Thing Elaborator::lambda(const Expression& expression) {
  Thing thing{.kind = ThingKind::kLambda,
              .type = {},
              .node = -1,
              .lambda = expression.lambda.get(),
              .scope = variables_.size()};
  for (const ast::Parameter& parameter : expression.lambda->parameters) {
    if (parameter.type.array || parameter.value != nullptr) {
      throw CompileError(parameter.place, "a lambda takes scalars, without defaults");
    }
  }
  check(thing, expression.place);
  return thing;
}

void Elaborator::check(const Thing& lambda, const Place& place) {
  std::vector<Thing> arguments;
  for (const ast::Parameter& parameter : lambda.lambda->parameters) {
    const ScalarKind kind = parameter.type.name == TypeName::kFloat  ? ScalarKind::kFloat
                            : parameter.type.name == TypeName::kBool ? ScalarKind::kBool
                                                                     : ScalarKind::kInt;
    const NodeId any = kind == ScalarKind::kInt ? values().element(Op::kIndex, kind)
                                                : values().element(Op::kGradient, kind);
    const TypeName name = kind == ScalarKind::kFloat  ? TypeName::kFloat
                          : kind == ScalarKind::kBool ? TypeName::kBool
                                                      : TypeName::kInt;
    arguments.push_back(made({name}, any));
  }
  apply(lambda, arguments, place);
}

Thing Elaborator::apply(const std::vector<ast::Parameter>& parameters, const ast::Type* result,
                        const ast::Block& body, const std::vector<Thing>& arguments,
                        std::size_t function, std::size_t ceiling, Captures captures,
                        const Place& called, const Place& defined) {
  if (parameters.size() != arguments.size()) {
    throw CompileError(called, fmt::format("{} argument{} given, {} taken", arguments.size(),
                                           arguments.size() == 1 ? "" : "s", parameters.size()));
  }
  if (++calls_ > kMaxCalls) throw CompileError(called, "calls are nested too deep");
  const auto outer = std::tuple(scope_, floor_, ceiling_, function_, captures_, result_type_);
  const std::size_t known = variables_.size();
  scope_ = Scope::kLambda;
  floor_ = known;
  ceiling_ = ceiling;
  function_ = function;
  captures_ = Captures::kAll;  // types may refer to names that the body does not capture
  std::optional<Type> type;
  if (result != nullptr) type = scalar_type_of_result(*result);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Thing argument = convert(arguments[i], scalar_type(parameters[i].type), called);
    declare(parameters[i].name, parameters[i].type, argument, parameters[i].place);
  }
  captures_ = captures;
  result_type_ = type ? &*type : nullptr;
  Flow flow;
  for (const Statement& statement : body) run(statement, flow);
  const Node* returned = flow.returned < 0 ? nullptr : &values()[flow.returned];
  if (returned == nullptr || returned->op != Op::kInteger || returned->integer == 0) {
    throw CompileError(defined, "this ends without a return on some path");
  }
  variables_.resize(known);
  locked_.erase(locked_.lower_bound(known), locked_.end());
  std::tie(scope_, floor_, ceiling_, function_, captures_, result_type_) = outer;
  --calls_;
  return flow.result;
}

Type Elaborator::scalar_type_of_result(const ast::Type& result) {
  if (result.array) throw CompileError(result.place, "one value is returned, not an array");
  return scalar_type(result);
}

Thing Elaborator::apply(const Thing& lambda, const std::vector<Thing>& arguments,
                        const Place& called) {
  const ast::Lambda& written = *lambda.lambda;
  return apply(written.parameters, written.result ? &*written.result : nullptr, written.body,
               arguments, function_, lambda.scope,
               written.captures ? Captures::kAll : Captures::kNone, called, written.place);
}

Thing Elaborator::call_helper(const ast::Function& helper, const std::vector<Thing>& arguments,
                              const Place& called) {
  if (std::find(running_.begin(), running_.end(), &helper) != running_.end()) {
    throw CompileError(called,
                       fmt::format("'{}' calls itself; there is no recursion", helper.name));
  }
  running_.push_back(&helper);
  const Thing result = apply(helper.parameters, &helper.result, helper.body, arguments,
                             ++functions_, 0, Captures::kNone, called, helper.place);
  running_.pop_back();
  return result;
}

Thing Elaborator::call(const Expression& expression) {
  const auto known = kOperators.find(expression.name);
  if (known != kOperators.end()) return (this->*known->second)(expression);
  if (const auto helper = helpers_.find(expression.name); helper != helpers_.end()) {
    std::vector<Thing> arguments;
    for (const auto& operand : expression.operands) arguments.push_back(scalar(*operand));
    const std::size_t outer = std::exchange(path_, path_ * 31 + expression.place.begin + 1);
    const Thing result = call_helper(*helper->second, arguments, expression.place);
    path_ = outer;
    return result;
  }
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const Variable& variable = variables_[i];
    if (variable.name == expression.name && variable.value.kind == ThingKind::kLambda &&
        visible(i)) {
      std::vector<Thing> arguments;
      for (const auto& operand : expression.operands) arguments.push_back(scalar(*operand));
      const Thing lambda = variable.value;
      const std::size_t outer = std::exchange(path_, path_ * 31 + expression.place.begin + 1);
      const Thing result = apply(lambda, arguments, expression.place);
      path_ = outer;
      return result;
    }
  }
  std::vector<std::string_view> names;
  for (const auto& [name, function] : kOperators) names.push_back(name);
  for (const auto& [name, function] : helpers_) names.push_back(name);
  throw CompileError(expression.place, fmt::format("there is no function '{}'{}", expression.name,
                                                   near(expression.name, names)));
}

}  // namespace hipress::compll
