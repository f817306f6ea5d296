#include "kernels/compll/code.hpp"

#include <stdexcept>

namespace hipress::compll {

std::string literal(double value, bool single) {
  // Hexadecimal is exact.
  return single ? fmt::format("{:a}f", static_cast<float>(value)) : fmt::format("{:a}", value);
}

const char* cpp_type(ScalarKind kind) {
  return kind == ScalarKind::kFloat  ? "double"
         : kind == ScalarKind::kBool ? "bool"
                                     : "std::int64_t";
}

const char* lane_type(ScalarKind kind) {
  return kind == ScalarKind::kFloat  ? "F"
         : kind == ScalarKind::kBool ? "MaskLanes<F>"
                                     : "UnsignedLanes<F>";
}

std::string Names::make(const std::string& wish, NodeId id) {
  if (wish.empty()) return fmt::format("v{}", id);
  const int count = ++used_[wish];
  return count == 1 ? "v_" + wish : fmt::format("v{}_{}", count, wish);
}

std::string number_operation(const Node& node, Precision precision,
                             const std::array<std::string, 3>& arguments) {
  const std::string &a = arguments[0], &b = arguments[1], &c = arguments[2];
  const bool whole = node.kind == ScalarKind::kInt;
  const char* const suffix = precision == Precision::kSingle ? "f" : "";
  const auto call = [&](const char* f) { return fmt::format("{}({}, {})", f, a, b); };
  const auto infix = [&](const char* op) { return fmt::format("{} {} {}", a, op, b); };
  const auto builtin = [&](const char* f) {
    return fmt::format("__builtin_{}{}({})", f, suffix, a);
  };
  switch (node.op) {
    case Op::kAdd:
      return whole ? call("whole_sum") : infix("+");
    case Op::kSubtract:
      return whole ? call("whole_difference") : infix("-");
    case Op::kMultiply:
      return whole ? call("whole_product") : infix("*");
    case Op::kDivide:
      return whole ? call("whole_quotient") : infix("/");
    case Op::kRemainder:
      return call("whole_remainder");
    case Op::kNegate:
      return whole ? fmt::format("whole_difference(0, {})", a) : fmt::format("-{}", a);
    case Op::kAnd:
      return infix("&");
    case Op::kOr:
      return infix("|");
    case Op::kXor:
      return infix("^");
    case Op::kNot:
      return fmt::format("{}{}", whole ? "~" : "!", a);
    case Op::kShiftLeft:
      return call("shifted_left");
    case Op::kShiftRight:
      return call("shifted_right");
    case Op::kLess:
      return infix("<");
    case Op::kLessEqual:
      return infix("<=");
    case Op::kEqual:
      return infix("==");
    case Op::kSelect:
      return fmt::format("{} ? {} : {}", a, b, c);
    case Op::kFloor:
      return builtin("floor");
    case Op::kCeil:
      return builtin("ceil");
    case Op::kAbs:
      return whole ? fmt::format("{0} < 0 ? whole_difference(0, {0}) : {0}", a) : builtin("fabs");
    case Op::kSqrt:
      return builtin("sqrt");
    case Op::kMin:
      return fmt::format("{0} < {1} ? {0} : {1}", a, b);
    case Op::kMax:
      return fmt::format("{0} > {1} ? {0} : {1}", a, b);
    case Op::kToFloat:
      return fmt::format("static_cast<{}>({})",
                         precision == Precision::kSingle ? "float" : "double", a);
    case Op::kToInt:
      return fmt::format("to_whole({})", a);
    case Op::kToBits:
      return call("clamped_to_bits");
    case Op::kBits:
      return fmt::format("bits_of_magnitude({})", a);
    case Op::kFloatOfBits:
      return fmt::format("float_of_bits({})", a);
    default:
      throw std::logic_error("a scalar that is no operation");
  }
}

std::string LaneCode::operation(const Node& node) const {
  const auto a = [&] { return text(node.arguments[0]); };
  const auto b = [&] { return text(node.arguments[1]); };
  const auto c = [&] { return text(node.arguments[2]); };
  const bool condition = node.kind == ScalarKind::kBool;
  const bool of_bits = values_[node.arguments[0]].kind == ScalarKind::kInt;
  const auto call = [&](const char* f) { return fmt::format("{}({}, {})", f, a(), b()); };
  const auto infix = [&](const char* op) { return fmt::format("{} {} {}", a(), op, b()); };
  switch (node.op) {
    case Op::kAdd:
      for (const int draw : {0, 1}) {
        const Node& part = values_[node.arguments[draw]];
        if (part.op != Op::kDraw) continue;
        return fmt::format("plus_uniform<F>({}, draws_{}, element)", text(node.arguments[1 - draw]),
                           part.integer);
      }
      return infix("+");
    case Op::kSubtract:
      return infix("-");
    case Op::kMultiply:
      return infix("*");
    case Op::kDivide:
      return infix("/");
    case Op::kNegate:
      return fmt::format("-{}", a());
    case Op::kAnd:
      return condition ? call("both") : infix("&");
    case Op::kOr:
      return condition ? call("either") : infix("|");
    case Op::kXor:
      return infix("^");
    case Op::kNot:
      return fmt::format("opposite({})", a());
    case Op::kShiftLeft:
      return fmt::format("{} << {}", a(), number(node.arguments[1]));
    case Op::kShiftRight:
      return fmt::format("{} >> {}", a(), number(node.arguments[1]));
    case Op::kLess:
      return call("less");
    case Op::kLessEqual:
      return of_bits ? fmt::format("opposite(less({}, {}))", b(), a())
                     : fmt::format("at_least({}, {})", b(), a());
    case Op::kEqual:
      return of_bits ? fmt::format("opposite(either(less({0}, {1}), less({1}, {0})))", a(), b())
                     : fmt::format("both(at_least({0}, {1}), at_least({1}, {0}))", a(), b());
    case Op::kSelect:
      // If the condition is the same for all lanes, compute one side only.
      if (!condition && !values_.per_element(node.arguments[0])) {
        return fmt::format("{} ? {} : {}", number(node.arguments[0]), b(), c());
      }
      return condition
                 ? fmt::format("either(both({0}, {1}), both(opposite({0}), {2}))", a(), b(), c())
                 : fmt::format("select({}, {}, {})", a(), b(), c());
    case Op::kFloor:
      return fmt::format("rounded_down({})", a());
    case Op::kCeil:
      return fmt::format("-rounded_down(-{})", a());
    case Op::kAbs:
      return fmt::format("magnitude({})", a());
    case Op::kSqrt:
      return fmt::format("square_root({})", a());
    case Op::kMin:
      return of_bits ? fmt::format("select(less({0}, {1}), {0}, {1})", a(), b()) : call("smaller");
    case Op::kMax:
      return of_bits ? fmt::format("select(less({1}, {0}), {0}, {1})", a(), b()) : call("larger");
    case Op::kToFloat:
      return fmt::format("to_float({})", a());
    case Op::kToBits:
      return fmt::format("{}<F>({}, {})", of_bits ? "lanes_below_bits" : "lanes_clamped_to_bits",
                         a(), number(node.arguments[1]));
    case Op::kBits:
      return fmt::format("as_bits(magnitude({}))", a());
    case Op::kFloatOfBits:
      return fmt::format("as_float({})", a());
    default:
      throw std::logic_error("an element's value that is no operation");
  }
}

}  // namespace hipress::compll
