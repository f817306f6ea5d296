#include "kernels/compll/elaborate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "io/suggestion.hpp"
#include "kernels/compll/ast.hpp"
#include "kernels/compll/parser.hpp"

namespace hipress::compll {

namespace {

using ast::Expression;
using ast::ExpressionKind;
using ast::Statement;
using ast::StatementKind;
using ast::TypeName;

constexpr double kLargestFloat = 3.4028234663852886e38;
/// A bound on the work that inlining can make; far above what any algorithm needs.
constexpr int kMostSteps = 1000000;
constexpr int kMostCalls = 100;  ///< calls inside each other
/// Bits of whole numbers made of floats in code that runs for every element: what fp32 holds.
constexpr std::int64_t kMostLaneBits = 24;
constexpr std::int64_t kMostWholeSum = 1 << 20;

/// The static type of a scalar or of an array's elements.
struct Type {
  TypeName name = TypeName::kVoid;
  NodeId bits = -1;  ///< of uint8 and uint<bits>

  ScalarKind kind() const {
    return name == TypeName::kFloat  ? ScalarKind::kFloat
           : name == TypeName::kBool ? ScalarKind::kBool
                                     : ScalarKind::kInt;
  }
  bool clamps() const { return name == TypeName::kUint8 || name == TypeName::kUint; }
};

enum class ThingKind : std::uint8_t { kUnset, kScalar, kArray, kLambda, kMessage };

/// What a name or an expression stands for.
struct Thing {
  ThingKind kind = ThingKind::kUnset;
  Type type;
  NodeId node = -1;  ///< the scalar, or the array's element at the index
  const ast::Lambda* lambda = nullptr;
  std::size_t scope = 0;  ///< of a lambda: variables known where it was written
};

struct Variable {
  std::string name;
  ast::Type declared;
  Type type;
  Thing value;
  Place place;
  std::size_t function = 0;  ///< which call it belongs to: lambdas of another do not see it
};

std::string name_of(TypeName name) {
  switch (name) {
    case TypeName::kVoid:
      return "void";
    case TypeName::kBool:
      return "bool";
    case TypeName::kInt:
      return "int";
    case TypeName::kUint8:
      return "uint8";
    case TypeName::kUint:
      return "uint<…>";
    case TypeName::kFloat:
      return "float";
    case TypeName::kLambda:
      return "lambda_func";
  }
  return "?";
}

/// What executing statements leaves besides variables.
struct Flow {
  NodeId returned = -1;  ///< bool: whether a return has been met; -1: not at all
  Thing result;
};

enum class Role : std::uint8_t { kHelper, kEncoder, kDecoder };

Role role_of(const ast::Function& function) {
  const auto is = [&](std::size_t i, TypeName name) {
    return i < function.parameters.size() && function.parameters[i].type.array &&
           function.parameters[i].type.name == name;
  };
  if (is(0, TypeName::kFloat) && is(1, TypeName::kUint8)) return Role::kEncoder;
  if (is(0, TypeName::kUint8) && is(1, TypeName::kFloat)) return Role::kDecoder;
  return Role::kHelper;
}

class Elaborator {
 public:
  explicit Elaborator(const std::vector<const Source*>& sources) : first_(sources.at(0)) {
    for (const Source* source : sources) files_.push_back(parse(*source));
  }

  Elaborated run() {
    collect();
    for (const ast::Function* helper : helpers_in_order_) check_helper(*helper);
    if (encoder_ == nullptr && decoder_ == nullptr) {
      const bool empty = files_[0].functions.empty();
      const Place place = empty ? Place{first_, 0, 0} : files_[0].functions[0].place;
      throw CompileError(place,
                         "there is no encoder (float* gradient, uint8* compressed, …) and no "
                         "decoder (uint8* compressed, float* gradient, …)");
    }
    program_.name = base_name(encoder_ != nullptr ? *encoder_ : *decoder_);
    if (encoder_ != nullptr && decoder_ != nullptr && base_name(*decoder_) != program_.name) {
      throw CompileError(decoder_->place,
                         fmt::format("this decoder does not belong to encoder '{}'; call it "
                                     "{}Decode",
                                     encoder_->name, program_.name));
    }
    if (encoder_ != nullptr) declare_parameters(*encoder_);
    if (decoder_ != nullptr) declare_parameters(*decoder_);
    if (encoder_ != nullptr) run_entry(*encoder_, Role::kEncoder);
    if (decoder_ != nullptr) run_entry(*decoder_, Role::kDecoder);
    if (encoder_ != nullptr && decoder_ != nullptr) match_messages();
    return {std::move(program_), std::move(notes_)};
  }

 private:
  // ---- functions and parameters ----

  void collect() {
    for (const ast::File& file : files_) {
      for (const ast::Function& function : file.functions) {
        const Role role = role_of(function);
        if (!names_.insert(function.name).second) {
          throw CompileError(function.place,
                             fmt::format("there are two functions '{}'", function.name));
        }
        if (role == Role::kHelper) {
          helpers_[function.name] = &function;
          helpers_in_order_.push_back(&function);
          continue;
        }
        const ast::Function*& entry = role == Role::kEncoder ? encoder_ : decoder_;
        if (entry != nullptr) {
          throw CompileError(
              function.place,
              fmt::format("there is an {} already, '{}'; an algorithm has one",
                          role == Role::kEncoder ? "encoder" : "decoder", entry->name));
        }
        if (function.result.name != TypeName::kVoid) {
          throw CompileError(function.result.place,
                             "an encoder or decoder returns void: its result is assigned to its "
                             "second parameter");
        }
        entry = &function;
      }
    }
  }

  static std::string base_name(const ast::Function& function) {
    std::string name = function.name;
    for (const std::string_view ending : {"Encode", "Decode", "_encode", "_decode"}) {
      if (name.size() > ending.size() && name.ends_with(ending)) {
        name.resize(name.size() - ending.size());
        break;
      }
    }
    return name;
  }

  /// Every helper must be sound by itself, called or not.
  void check_helper(const ast::Function& helper) {
    std::vector<Thing> arguments;
    for (std::size_t i = 0; i < helper.parameters.size(); ++i) {
      const ast::Parameter& parameter = helper.parameters[i];
      if (parameter.type.array || parameter.value != nullptr) {
        throw CompileError(parameter.place,
                           "a helper function takes scalars, without defaults; arrays stay in the "
                           "encoder and decoder");
      }
      const Type type = scalar_type(parameter.type);
      // A parameter of its own stands for any argument.
      const NodeId any = values().leaf(Op::kField, type.kind(), -2 - static_cast<std::int64_t>(i));
      arguments.push_back({.kind = ThingKind::kScalar, .type = type, .node = converted(any, type)});
    }
    call_helper(helper, arguments, helper.place);
  }

  /// A parameter's default or end of its range: a number.
  std::optional<double> number(const ast::ExpressionPtr& expression) {
    if (expression == nullptr) return {};
    const Thing thing = scalar(*expression);
    const Node& node = values()[thing.node];
    if (node.op == Op::kInteger && node.kind == ScalarKind::kInt) {
      return static_cast<double>(node.integer);
    }
    if (node.op == Op::kReal) return node.real;
    throw CompileError(expression->place, "this must be a number");
  }

  void declare_parameters(const ast::Function& entry) {
    for (std::size_t i = 2; i < entry.parameters.size(); ++i) {
      const ast::Parameter& parameter = entry.parameters[i];
      if (parameter.type.array) {
        throw CompileError(parameter.place,
                           "further parameters are scalars; what is kept per element is the "
                           "runtime's");
      }
      const Type type = scalar_type(parameter.type);
      ProgramParameter made{.name = parameter.name, .kind = type.kind(), .value = {}};
      if (type.kind() == ScalarKind::kBool) {
        throw CompileError(parameter.place, "a parameter is a float, int, uint8 or uint<bits>");
      }
      const bool real = type.kind() == ScalarKind::kFloat;
      made.least = real ? -kLargestFloat : type.clamps() ? 0 : -0x1p53;
      made.most = real            ? kLargestFloat
                  : type.clamps() ? std::exp2(constant_bits(type, parameter.type.place)) - 1
                                  : 0x1p53;
      made.value = number(parameter.value);
      if (parameter.least != nullptr) {
        made.least = std::max(made.least, *number(parameter.least));
        made.most = std::min(made.most, *number(parameter.most));
      }
      if (!(made.least <= made.most) ||
          (made.value && !(*made.value >= made.least && *made.value <= made.most))) {
        throw CompileError(parameter.place,
                           fmt::format("the default of '{}' must lie in its range, which must not "
                                       "be empty",
                                       parameter.name));
      }
      add_parameter(std::move(made), parameter.place);
    }
  }

  int constant_bits(const Type& type, const Place& place) {
    const Node& bits = values()[type.bits];
    if (bits.op != Op::kInteger) {
      throw CompileError(place, "the bits of a parameter must be a number");
    }
    return static_cast<int>(bits.integer);
  }

  void add_parameter(ProgramParameter made, const Place& place) {
    for (const ProgramParameter& known : program_.parameters) {
      if (known.name != made.name) continue;
      if (known.kind != made.kind || known.value != made.value || known.least != made.least ||
          known.most != made.most) {
        throw CompileError(place, fmt::format("encoder and decoder declare parameter '{}' "
                                              "differently; they share it",
                                              made.name));
      }
      return;
    }
    const bool real = made.kind == ScalarKind::kFloat;
    values().parameter_ranges.push_back(
        real ? Values::Range{0, 0}
             : Values::Range{static_cast<std::int64_t>(std::ceil(made.least)),
                             static_cast<std::int64_t>(std::floor(made.most))});
    program_.parameters.push_back(std::move(made));
  }

  std::int64_t parameter_number(const std::string& name) const {
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      if (program_.parameters[i].name == name) return static_cast<std::int64_t>(i);
    }
    throw std::logic_error("a parameter that was not declared");
  }

  void run_entry(const ast::Function& entry, Role role) {
    role_ = role;
    floor_ = 0;
    variables_.clear();
    function_ = ++functions_;
    if (role == Role::kEncoder) {
      program_.encoder.emplace();
    } else {
      program_.decoder.emplace();
    }
    const std::size_t gradient_at = role == Role::kEncoder ? 0 : 1;
    gradient_ = entry.parameters[gradient_at].name;
    message_ = entry.parameters[1 - gradient_at].name;
    for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
      const ast::Parameter& parameter = entry.parameters[i];
      Thing thing;
      if (i == 1 - gradient_at) {
        thing.kind = ThingKind::kMessage;
      } else if (i == gradient_at) {
        if (role == Role::kEncoder) {
          thing = {.kind = ThingKind::kArray,
                   .type = {TypeName::kFloat},
                   .node = values().leaf(Op::kGradient, ScalarKind::kFloat)};
        }
      } else {
        const Type type = scalar_type(parameter.type);
        const NodeId node =
            values().leaf(Op::kParameter, type.kind(), parameter_number(parameter.name));
        values().name(node, parameter.name);
        thing = {.kind = ThingKind::kScalar, .type = type, .node = node};
      }
      declare(parameter.name, parameter.type, thing, parameter.place);
    }
    Flow flow;
    level_ = Level::kProgram;
    run(entry.body, flow);
    if (role == Role::kEncoder && program_.encoder->code < 0) {
      throw CompileError(
          entry.place,
          fmt::format("'{}' is never given a value; end with {} = concat(…);", message_, message_));
    }
    if (role == Role::kDecoder && program_.decoder->level < 0) {
      throw CompileError(
          entry.place,
          fmt::format("'{}' is never given a value; end with {} = map(…);", gradient_, gradient_));
    }
    if (role == Role::kDecoder && program_.decoder->bits < 0) {
      throw CompileError(entry.place, fmt::format("this decoder never reads its message; begin "
                                                  "with extract({}, …)",
                                                  message_));
    }
  }

  void match_messages() {
    const std::vector<Field>& written = program_.encoder->fields;
    const std::vector<Field>& read = program_.decoder->fields;
    bool equal = written.size() == read.size();
    for (std::size_t i = 0; equal && i < written.size(); ++i) {
      equal = written[i].kind == read[i].kind;
    }
    if (!equal) {
      throw CompileError(decoder_->place,
                         fmt::format("'{}' does not read what '{}' writes: extract's variables "
                                     "must be, in order and type, what concat was given",
                                     decoder_->name, encoder_->name));
    }
  }

  // ---- names ----

  Values& values() { return program_.values; }

  void declare(const std::string& name, const ast::Type& declared, const Thing& value,
               const Place& place) {
    // What a lambda declares may have the name of something outside.
    for (std::size_t i = floor_; i < variables_.size(); ++i) {
      const Variable& known = variables_[i];
      if (known.name == name && known.function == function_) {
        throw CompileError(place, fmt::format("'{}' is declared already; take another name", name));
      }
    }
    const bool called = declared.name == TypeName::kLambda;
    if (called && (kOperators.contains(name) || helpers_.contains(name))) {
      throw CompileError(place, fmt::format("'{}' is a function; take another name", name));
    }
    if (variables_.size() >= 10000) throw CompileError(place, "too many variables");
    variables_.push_back({name, declared, {}, value, place, function_});
    if (value.kind == ThingKind::kScalar || value.kind == ThingKind::kArray) {
      variables_.back().type = value.type;
    } else if (declared.name != TypeName::kUint) {
      variables_.back().type =
          declared.name == TypeName::kLambda || declared.name == TypeName::kVoid
              ? Type{}
              : scalar_type(declared);
    }
  }

  /// A function sees its own variables, a lambda those declared before it as well.
  bool visible(std::size_t index) const {
    return variables_[index].function == function_ && (index >= floor_ || index < ceiling_);
  }

  static std::string near(std::string_view word, const std::vector<std::string_view>& known) {
    const std::string_view nearest = io::nearest(word, known);
    return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
  }

  Variable& find(const std::string& name, const Place& place) {
    for (std::size_t i = variables_.size(); i-- > 0;) {
      if (variables_[i].name == name && visible(i)) return variables_[i];
    }
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      if (visible(i)) known.push_back(variables_[i].name);
    }
    throw CompileError(place,
                       fmt::format("there is nothing called '{}' here{}", name, near(name, known)));
  }

  // ---- types ----

  Type scalar_type(const ast::Type& type) {
    switch (type.name) {
      case TypeName::kBool:
      case TypeName::kInt:
      case TypeName::kFloat:
        return {type.name};
      case TypeName::kUint8:
        return {type.name, values().integer(8)};
      case TypeName::kUint: {
        const Thing bits = scalar(*type.bits);
        if (bits.type.kind() != ScalarKind::kInt || values().per_element(bits.node)) {
          throw CompileError(type.bits->place,
                             "the number of bits is a whole number that is the same for every "
                             "element");
        }
        const Values::Range range = values().range(bits.node);
        if (range.most < 1 || range.least > 32) {
          throw CompileError(type.bits->place, "uint has 1 to 32 bits");
        }
        return {type.name, bits.node};
      }
      case TypeName::kVoid:
      case TypeName::kLambda:
        break;
    }
    throw CompileError(type.place, fmt::format("{} is no type of a value", name_of(type.name)));
  }

  /// A value as one of a type, where that needs no permission.
  NodeId converted(NodeId node, const Type& type) {
    const ScalarKind kind = values()[node].kind;
    if (type.clamps()) {
      const Values::Range range = values().range(node);
      const Values::Range bits = values().range(type.bits);
      const bool fits = kind == ScalarKind::kInt && range.least >= 0 && bits.least == bits.most &&
                        bits.most <= 32 && range.most < (std::int64_t{1} << bits.most);
      return fits ? node : values().make(Op::kToBits, node, type.bits);
    }
    if (kind == type.kind()) return node;
    return values().make(type.kind() == ScalarKind::kFloat ? Op::kToFloat : Op::kToInt, node);
  }

  /// The implicit conversions of the language.
  Thing convert(const Thing& thing, const Type& type, const Place& place) {
    if ((thing.type.kind() == ScalarKind::kBool) != (type.kind() == ScalarKind::kBool)) {
      throw CompileError(place, type.kind() == ScalarKind::kBool
                                    ? fmt::format("a condition is needed, this is a {}; compare it "
                                                  "with something",
                                                  name_of(thing.type.name))
                                    : fmt::format("this is a condition, a {} is needed; write "
                                                  "c ? 1 : 0",
                                                  name_of(type.name)));
    }
    Thing made = thing;
    made.node = converted(thing.node, type);
    made.type = type;
    return made;
  }

  // ---- statements ----

  enum class Level : std::uint8_t { kProgram, kBranch, kLambda };

  void run(const ast::Block& block, Flow& flow) {
    const std::size_t known = variables_.size();
    for (const Statement& statement : block) run(statement, flow);
    // Names end with their block; at program level they stay, for nobody else can see them.
    if (level_ != Level::kProgram) variables_.resize(std::max(known, floor_));
  }

  void step(const Place& place) {
    if (++steps_ > kMostSteps) {
      throw CompileError(place, "the program is too large once its functions are inlined");
    }
  }

  void run(const Statement& statement, Flow& flow) {
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

  void run_declaration(const Statement& statement) {
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

  Thing initial_value(const Statement& statement) {
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

  static std::string describe(const Thing& thing) {
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

  void run_feedback(const Statement& statement) {
    if (role_ != Role::kEncoder || level_ != Level::kProgram || statement.name != gradient_) {
      throw CompileError(statement.place,
                         "error_feedback stands in an encoder and names its "
                         "gradient");
    }
    program_.encoder->error_feedback = true;
  }

  void run_assignment(const Statement& statement) {
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

  void assign_array(const Statement& statement, std::size_t index) {
    if (level_ != Level::kProgram || statement.op != "=") {
      throw CompileError(statement.place,
                         "an array is assigned once, outside branches and lambdas");
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

  void run_if(const Statement& statement, Flow& flow) {
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

  void merge(NodeId condition, const Flow& yes, const Flow& no, Flow& flow, const Place& place) {
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

  /// condition ? yes : no, in the type that holds both.
  Thing common(const Thing& yes, const Thing& no, NodeId condition, const Place& place) {
    Type type = yes.type;
    if (yes.type.name != no.type.name || yes.type.bits != no.type.bits) {
      const bool real =
          yes.type.kind() == ScalarKind::kFloat || no.type.kind() == ScalarKind::kFloat;
      type = {real ? TypeName::kFloat : TypeName::kInt};
      if (yes.type.kind() == ScalarKind::kBool || no.type.kind() == ScalarKind::kBool) {
        type = {TypeName::kBool};
      }
    }
    const Thing a = convert(yes, type, place), b = convert(no, type, place);
    return {.kind = ThingKind::kScalar,
            .type = type,
            .node = values().select(condition, a.node, b.node)};
  }

  void run_return(const Statement& statement, Flow& flow) {
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

  void run_call(const Statement& statement) {
    if (statement.value->name != "extract") {
      throw CompileError(statement.place, "what this returns is lost; assign it to a variable");
    }
    extract(*statement.value);
  }

  // ---- messages ----

  void assign_message(const Statement& statement) {
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

  /// A code has 1 to 8 bits. A parameter that is their number gets that range.
  void bound_bits(const Expression& call) {
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

  Field field(const Type& type, const Expression& operand) {
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

  void extract(const Expression& call) {
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

  // ---- expressions ----

  Thing scalar(const Expression& expression) {
    Thing thing = evaluate(expression);
    if (thing.kind != ThingKind::kScalar) {
      throw CompileError(expression.place,
                         fmt::format("this is {}, one value is needed", describe(thing)));
    }
    return thing;
  }

  Thing made(Type type, NodeId node) {
    return {.kind = ThingKind::kScalar, .type = type, .node = node};
  }

  Thing evaluate(const Expression& expression) {
    step(expression.place);
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

  Thing read_name(const Expression& expression) {
    Variable& variable = find(expression.name, expression.place);
    const std::size_t index = static_cast<std::size_t>(&variable - variables_.data());
    if (level_ == Level::kLambda && index < floor_) {
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

  Thing read(const Variable& variable, const Place& place) {
    if (variable.value.kind == ThingKind::kUnset) {
      throw CompileError(
          place, fmt::format("'{}' is read before it has a value on every path", variable.name));
    }
    return variable.value;
  }

  Thing element(const Expression& expression) {
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
    if (values()[index.node].op != Op::kIndex) {
      throw CompileError(expression.operands[1]->place,
                         "elements are read at the lambda's own index only: f(int i) over "
                         "range(gradient.size) reads a[i]");
    }
    return made(thing.type, thing.node);
  }

  Thing size(const Expression& expression) {
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
    } else if (evaluate(array).kind != ThingKind::kArray) {
      throw CompileError(array.place, "this is no array");
    }
    return made({TypeName::kInt}, values().leaf(Op::kSize, ScalarKind::kInt));
  }

  Thing unary(const Expression& expression) {
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
      return made({real ? TypeName::kFloat : TypeName::kInt},
                  values().make(Op::kNegate, value.node));
    }
    if (real) throw CompileError(expression.place, "'~' turns the bits of an int");
    return made({TypeName::kInt}, values().make(Op::kNot, value.node));
  }

  void require_number(const Thing& thing, const Place& place) {
    if (thing.type.kind() == ScalarKind::kBool) {
      throw CompileError(place, "this is a condition, a number is needed; write c ? 1 : 0");
    }
  }

  Thing binary(const std::string& op, Thing a, Thing b, const Place& place) {
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
    static const std::map<std::string, Op> kWhole = {
        {"%", Op::kRemainder}, {"&", Op::kAnd},        {"|", Op::kOr},
        {"^", Op::kXor},       {"<<", Op::kShiftLeft}, {">>", Op::kShiftRight}};
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

  Thing lambda(const Expression& expression) {
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

  /// Runs a lambda on placeholders, so that it is sound by itself, used or not.
  void check(const Thing& lambda, const Place& place) {
    std::vector<Thing> arguments;
    for (const ast::Parameter& parameter : lambda.lambda->parameters) {
      const ScalarKind kind = parameter.type.name == TypeName::kFloat  ? ScalarKind::kFloat
                              : parameter.type.name == TypeName::kBool ? ScalarKind::kBool
                                                                       : ScalarKind::kInt;
      const NodeId any = kind == ScalarKind::kInt ? values().leaf(Op::kIndex, kind)
                                                  : values().leaf(Op::kGradient, kind);
      const TypeName name = kind == ScalarKind::kFloat  ? TypeName::kFloat
                            : kind == ScalarKind::kBool ? TypeName::kBool
                                                        : TypeName::kInt;
      arguments.push_back(made({name}, any));
    }
    apply(lambda, arguments, place);
  }

  enum class Captures : std::uint8_t { kNone, kAll };

  /// Runs a body with its parameters, in a scope that begins after the variables known now.
  Thing apply(const std::vector<ast::Parameter>& parameters, const ast::Type* result,
              const ast::Block& body, const std::vector<Thing>& arguments, std::size_t function,
              std::size_t ceiling, Captures captures, const Place& called, const Place& defined) {
    if (parameters.size() != arguments.size()) {
      throw CompileError(called, fmt::format("{} argument{} given, {} taken", arguments.size(),
                                             arguments.size() == 1 ? "" : "s", parameters.size()));
    }
    if (++calls_ > kMostCalls) throw CompileError(called, "calls are nested too deep");
    const auto outer = std::tuple(level_, floor_, ceiling_, function_, captures_, result_type_);
    const std::size_t known = variables_.size();
    level_ = Level::kLambda;
    floor_ = known;
    ceiling_ = ceiling;
    function_ = function;
    captures_ = Captures::kAll;  // types may name what the body does not capture
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
    std::tie(level_, floor_, ceiling_, function_, captures_, result_type_) = outer;
    --calls_;
    return flow.result;
  }

  Type scalar_type_of_result(const ast::Type& result) {
    if (result.array) throw CompileError(result.place, "one value is returned, not an array");
    return scalar_type(result);
  }

  Thing apply(const Thing& lambda, const std::vector<Thing>& arguments, const Place& called) {
    const ast::Lambda& written = *lambda.lambda;
    return apply(written.parameters, written.result ? &*written.result : nullptr, written.body,
                 arguments, function_, lambda.scope,
                 written.captures ? Captures::kAll : Captures::kNone, called, written.place);
  }

  Thing call_helper(const ast::Function& helper, const std::vector<Thing>& arguments,
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

  Thing call(const Expression& expression) {
    const auto known = kOperators.find(expression.name);
    if (known != kOperators.end()) return (this->*known->second)(expression);
    if (const auto helper = helpers_.find(expression.name); helper != helpers_.end()) {
      std::vector<Thing> arguments;
      for (const auto& operand : expression.operands) arguments.push_back(scalar(*operand));
      return call_helper(*helper->second, arguments, expression.place);
    }
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const Variable& variable = variables_[i];
      if (variable.name == expression.name && variable.value.kind == ThingKind::kLambda &&
          visible(i)) {
        std::vector<Thing> arguments;
        for (const auto& operand : expression.operands) arguments.push_back(scalar(*operand));
        const Thing lambda = variable.value;
        return apply(lambda, arguments, expression.place);
      }
    }
    std::vector<std::string_view> names;
    for (const auto& [name, function] : kOperators) names.push_back(name);
    for (const auto& [name, function] : helpers_) names.push_back(name);
    throw CompileError(expression.place, fmt::format("there is no function '{}'{}", expression.name,
                                                     near(expression.name, names)));
  }

  // ---- operators ----

  void require_arguments(const Expression& call, std::size_t count, std::string_view form) {
    if (call.operands.size() != count) {
      throw CompileError(call.place, fmt::format("{} is written {}", call.name, form));
    }
  }

  void require_program_level(const Expression& call) {
    if (level_ == Level::kLambda) {
      throw CompileError(call.place,
                         fmt::format("{} works on arrays and stands outside lambdas", call.name));
    }
  }

  Thing array(const Expression& operand) {
    const Thing thing = evaluate(operand);
    if (thing.kind != ThingKind::kArray) {
      throw CompileError(operand.place,
                         fmt::format("this is {}, an array is needed", describe(thing)));
    }
    return thing;
  }

  Thing function(const Expression& operand) {
    const Thing thing = evaluate(operand);
    if (thing.kind != ThingKind::kLambda) {
      throw CompileError(operand.place,
                         fmt::format("this is {}, a lambda is needed", describe(thing)));
    }
    return thing;
  }

  Thing range(const Expression& call) {
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

  Thing map(const Expression& call) {
    require_program_level(call);
    if (call.operands.size() < 2) {
      throw CompileError(call.place,
                         "map is written map(a, f), or map(a, b, f) for several arrays");
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

  Thing reduce(const Expression& call) {
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

  /// Which reduction a lambda of kFirst and kSecond is.
  ReductionKind reduction_kind(NodeId body, const Place& place) {
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

  void finish(const Reduction& reduction, const Type& type, const Expression& call) {
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

  NodeId add(const Reduction& reduction) {
    auto& reductions = program_.encoder->reductions;
    const auto number = static_cast<std::int64_t>(reductions.size());
    if (number >= 64) throw std::length_error("more than 64 reductions");
    values().set_reduction_level(number, values().level(reduction.element));
    reductions.push_back(reduction);
    return values().leaf(Op::kReduction, values()[reduction.element].kind, number);
  }

  /// Code that runs for every element reads elements, not their numbers.
  void require_element_code(NodeId node, const Place& place) {
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

  /// What vectors of 32-bit lanes can do.
  void check_lanes(const std::set<NodeId>& nodes, const Place& place) {
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

  Thing on_floats(const Expression& call, Op op) {
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
  Thing floor(const Expression& call) { return on_floats(call, Op::kFloor); }
  Thing ceil(const Expression& call) { return on_floats(call, Op::kCeil); }
  Thing abs(const Expression& call) { return on_floats(call, Op::kAbs); }
  Thing sqrt(const Expression& call) { return on_floats(call, Op::kSqrt); }

  Thing of_two(const Expression& call, Op op) {
    require_arguments(call, 2, fmt::format("{}(a, b)", call.name));
    const Thing a = scalar(*call.operands[0]), b = scalar(*call.operands[1]);
    require_number(a, call.operands[0]->place);
    require_number(b, call.operands[1]->place);
    const bool real = a.type.kind() == ScalarKind::kFloat || b.type.kind() == ScalarKind::kFloat;
    const Type type{real ? TypeName::kFloat : TypeName::kInt};
    return made(type, values().make(op, converted(a.node, type), converted(b.node, type)));
  }
  Thing min(const Expression& call) { return of_two(call, Op::kMin); }
  Thing max(const Expression& call) { return of_two(call, Op::kMax); }

  Thing random(const Expression& call) {
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
    return made(type,
                values().make(Op::kAdd, least.node, values().make(Op::kMultiply, draw, width)));
  }

  bool is_number(NodeId node, double value) {
    return values()[node].op == Op::kReal && values()[node].real == value;
  }

  Thing not_here(const Expression& call) {
    throw CompileError(call.place,
                       call.name == "concat"
                           ? "concat makes the message: compressed = concat(…);"
                           : "extract is a statement of its own: extract(compressed, …);");
  }

  using Operator = Thing (Elaborator::*)(const Expression&);
  const std::map<std::string, Operator> kOperators = {
      {"range", &Elaborator::range},     {"map", &Elaborator::map},
      {"reduce", &Elaborator::reduce},   {"floor", &Elaborator::floor},
      {"ceil", &Elaborator::ceil},       {"abs", &Elaborator::abs},
      {"sqrt", &Elaborator::sqrt},       {"min", &Elaborator::min},
      {"max", &Elaborator::max},         {"random", &Elaborator::random},
      {"concat", &Elaborator::not_here}, {"extract", &Elaborator::not_here}};

  const Source* const first_;
  std::vector<ast::File> files_;
  const ast::Function* encoder_ = nullptr;
  const ast::Function* decoder_ = nullptr;
  std::set<std::string> names_;
  std::map<std::string, const ast::Function*> helpers_;
  std::vector<const ast::Function*> helpers_in_order_;
  std::vector<const ast::Function*> running_;

  Program program_;
  Notes notes_;
  std::vector<Variable> variables_;
  std::set<std::size_t> locked_;  ///< variables that a lambda has read
  std::map<const Expression*, std::int64_t> sites_;

  Role role_ = Role::kHelper;
  std::string gradient_, message_;
  Level level_ = Level::kLambda;
  std::size_t floor_ = 0;    ///< variables before it belong to somebody outside
  std::size_t ceiling_ = 0;  ///< of those, the ones before this are seen nevertheless
  std::size_t function_ = 0, functions_ = 0;
  Captures captures_ = Captures::kNone;
  const Type* result_type_ = nullptr;
  int steps_ = 0, calls_ = 0;
};

}  // namespace

Elaborated elaborate(const std::vector<const Source*>& sources) {
  return Elaborator(sources).run();
}

}  // namespace hipress::compll
