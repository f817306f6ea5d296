#include "kernels/compll/elaborate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/suggestion.hpp"
#include "kernels/compll/elaborator.hpp"
#include "kernels/compll/parser.hpp"

namespace hipress::compll {

namespace {

/// Maximum number of variables at a time; each use of a name searches all of them.
constexpr std::size_t kMaxVariables = 1000;

Role role_of(const ast::Function& function) {
  const auto is = [&](std::size_t i, TypeName name) {
    return i < function.parameters.size() && function.parameters[i].type.array &&
           function.parameters[i].type.name == name;
  };
  if (is(0, TypeName::kFloat) && is(1, TypeName::kUint8)) return Role::kEncoder;
  if (is(0, TypeName::kUint8) && is(1, TypeName::kFloat)) return Role::kDecoder;
  return Role::kHelper;
}

}  // namespace

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

Elaborator::Elaborator(const std::vector<const Source*>& sources) : first_(sources.at(0)) {
  for (const Source* source : sources) files_.push_back(parse(*source));
}

Elaborated Elaborator::run() {
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
  if (program_.block >= 0) check_blocks();
  return {std::move(program_), std::move(notes_)};
}

void Elaborator::collect() {
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

std::string Elaborator::base_name(const ast::Function& function) {
  std::string name = function.name;
  for (const std::string_view ending : {"Encode", "Decode", "_encode", "_decode"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      name.resize(name.size() - ending.size());
      break;
    }
  }
  return name;
}

void Elaborator::check_helper(const ast::Function& helper) {
  std::vector<Thing> arguments;
  for (std::size_t i = 0; i < helper.parameters.size(); ++i) {
    const ast::Parameter& parameter = helper.parameters[i];
    if (parameter.type.array || parameter.value != nullptr || parameter.own) {
      throw CompileError(parameter.place,
                         "a helper function takes scalars, without defaults; arrays stay in the "
                         "encoder and decoder");
    }
    const Type type = scalar_type(parameter.type);
    // A placeholder stands for any argument.
    const NodeId any = values().leaf(Op::kField, type.kind(), -2 - static_cast<std::int64_t>(i));
    arguments.push_back({.kind = ThingKind::kScalar, .type = type, .node = converted(any, type)});
  }
  call_helper(helper, arguments, helper.place);
}

std::optional<double> Elaborator::number(const ast::ExpressionPtr& expression) {
  if (expression == nullptr) return {};
  const Thing thing = scalar(*expression);
  const Node& node = values()[thing.node];
  if (node.op == Op::kInteger && node.kind == ScalarKind::kInt) {
    return static_cast<double>(node.integer);
  }
  if (node.op == Op::kReal) return node.real;
  throw CompileError(expression->place, "this must be a number");
}

void Elaborator::declare_parameters(const ast::Function& entry) {
  for (std::size_t i = 2; i < entry.parameters.size(); ++i) {
    const ast::Parameter& parameter = entry.parameters[i];
    if (parameter.type.array) {
      throw CompileError(
          parameter.place,
          "further parameters are scalars; the runtime keeps the values per element");
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
    made.own = parameter.own;
    if (made.own && (&entry != encoder_ || !(made.least <= 0 && made.most >= 0))) {
      throw CompileError(parameter.place,
                         fmt::format("'{}' makes an algorithm an optimizer of its own unless it is "
                                     "0: it belongs to an encoder, and its range holds 0",
                                     parameter.name));
    }
    add_parameter(std::move(made), parameter.place);
  }
}

int Elaborator::constant_bits(const Type& type, const Place& place) {
  const Node& bits = values()[type.bits];
  if (bits.op != Op::kInteger) {
    throw CompileError(place, "the bits of a parameter must be a number");
  }
  return static_cast<int>(bits.integer);
}

void Elaborator::add_parameter(ProgramParameter made, const Place& place) {
  for (const ProgramParameter& known : program_.parameters) {
    if (known.name != made.name) continue;
    if (known.kind != made.kind || known.value != made.value || known.least != made.least ||
        known.most != made.most || known.own != made.own) {
      throw CompileError(place, fmt::format("encoder and decoder declare parameter '{}' "
                                            "differently; they share it",
                                            made.name));
    }
    return;
  }
  if (program_.parameters.size() == 32) {
    throw CompileError(place, "an algorithm has at most 32 parameters");
  }
  const bool real = made.kind == ScalarKind::kFloat;
  values().parameter_ranges.push_back(
      real ? Values::Range{0, 0}
           : Values::Range{static_cast<std::int64_t>(std::ceil(made.least)),
                           static_cast<std::int64_t>(std::floor(made.most))});
  program_.parameters.push_back(std::move(made));
}

std::int64_t Elaborator::parameter_number(const std::string& name) const {
  for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
    if (program_.parameters[i].name == name) return static_cast<std::int64_t>(i);
  }
  throw std::logic_error("a parameter that was not declared");
}

void Elaborator::run_entry(const ast::Function& entry, Role role) {
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
                 .node = values().element(Op::kGradient, ScalarKind::kFloat)};
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
  scope_ = Scope::kProgram;
  run(entry.body, flow);
  if (role == Role::kEncoder && program_.encoder->parts.empty()) {
    throw CompileError(
        entry.place,
        fmt::format("'{}' is never given a value; end with {} = concat(…);", message_, message_));
  }
  if (role == Role::kDecoder && program_.decoder->level < 0) {
    throw CompileError(
        entry.place,
        fmt::format("'{}' is never given a value; end with {} = map(…);", gradient_, gradient_));
  }
  if (role == Role::kDecoder && program_.decoder->parts.empty()) {
    throw CompileError(entry.place, fmt::format("this decoder never reads its message; begin "
                                                "with extract({}, …)",
                                                message_));
  }
}

void Elaborator::match_messages() {
  const std::vector<Field>& written = program_.encoder->fields;
  const std::vector<Field>& read = program_.decoder->fields;
  const std::vector<Part>& sent = program_.encoder->parts;
  const std::vector<Part>& taken = program_.decoder->parts;
  const auto alike = [](const auto& a, const auto& b) { return a.kind == b.kind; };
  const bool equal = std::equal(written.begin(), written.end(), read.begin(), read.end(), alike) &&
                     std::equal(sent.begin(), sent.end(), taken.begin(), taken.end(), alike);
  if (!equal) {
    throw CompileError(decoder_->place,
                       fmt::format("'{}' does not read what '{}' writes: extract's variables must "
                                   "match concat's arguments in order and type",
                                   decoder_->name, encoder_->name));
  }
}

// ---- names ----

void Elaborator::declare(const std::string& name, const ast::Type& declared, const Thing& value,
                         const Place& place) {
  // Searches from floor_ on, since a lambda's variables may shadow those outside of it.
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
  if (variables_.size() >= kMaxVariables) {
    throw CompileError(place, fmt::format("more than {} variables are known here; let the program "
                                          "compute less",
                                          kMaxVariables));
  }
  variables_.push_back({name, declared, {}, value, place, function_});
  if (value.kind == ThingKind::kScalar || value.kind == ThingKind::kArray) {
    variables_.back().type = value.type;
  } else if (declared.name != TypeName::kUint) {
    variables_.back().type = declared.name == TypeName::kLambda || declared.name == TypeName::kVoid
                                 ? Type{}
                                 : scalar_type(declared);
  }
}

bool Elaborator::visible(std::size_t index) const {
  return variables_[index].function == function_ && (index >= floor_ || index < ceiling_);
}

std::string Elaborator::near(std::string_view word, const std::vector<std::string_view>& known) {
  return io::question(word, known);
}

Variable& Elaborator::find(const std::string& name, const Place& place) {
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

Type Elaborator::scalar_type(const ast::Type& type) {
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

NodeId Elaborator::converted(NodeId node, const Type& type) {
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

Thing Elaborator::convert(const Thing& thing, const Type& type, const Place& place) {
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

Elaborated elaborate(const std::vector<const Source*>& sources) {
  return Elaborator(sources).run();
}

}  // namespace hipress::compll
