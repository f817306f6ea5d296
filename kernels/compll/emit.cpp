#include "kernels/compll/emit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

namespace hipress::compll {

namespace {

/// Names of C++ and of the frame that a program's own names must not hide.
const std::set<std::string> kReserved = {
    "alignas",  "alignof",   "asm",       "auto",     "bool",      "break",    "case",
    "catch",    "char",      "class",     "code",     "coder",     "concept",  "const",
    "continue", "default",   "delete",    "do",       "double",    "draws",    "element",
    "elements", "else",      "enum",      "explicit", "export",    "extern",   "false",
    "float",    "for",       "found",     "friend",   "goto",      "if",       "inline",
    "int",      "level",     "levels",    "long",     "measure",   "mutable",  "namespace",
    "new",      "operator",  "planes",    "private",  "protected", "public",   "register",
    "return",   "scalars",   "short",     "signed",   "sizeof",    "static",   "struct",
    "switch",   "template",  "this",      "throw",    "true",      "try",      "typedef",
    "typename", "union",     "unsigned",  "using",    "value",     "values",   "virtual",
    "void",     "volatile",  "while",     "wire",     "and",       "or",       "not",
    "xor",      "bitand",    "bitor",     "compl",    "requires",  "nullptr",  "noexcept",
    "decltype", "constexpr", "number",    "select",   "less",      "at_least", "smaller",
    "larger",   "truncate",  "broadcast", "load",     "store",     "stream",   "combine",
    "begin",    "conclude",  "F",         "U",        "M",         "main"};

std::string literal(double value, bool single) {
  // Hexadecimal says exactly which number it is.
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

/// Names for values: the program's where it has one, each once.
class Names {
 public:
  explicit Names(std::set<std::string> taken = {}) : taken_(std::move(taken)) {}

  std::string make(const std::string& wish, NodeId id) {
    std::string name = wish.empty() ? fmt::format("v{}", id) : wish;
    if (kReserved.contains(name) || name.starts_with("_")) name += "_";
    const std::string base = name;
    for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", base, n);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

/// All values that some need, least first: a value comes after its parts.
template <class Stop>
std::set<NodeId> needed_for(const Values& values, const std::vector<NodeId>& roots, Stop stop) {
  std::set<NodeId> needed;
  std::vector<NodeId> open = roots;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!needed.insert(id).second || stop(id)) continue;
    for (const NodeId argument : values[id].arguments) {
      if (argument >= 0) open.push_back(argument);
    }
  }
  return needed;
}

/// Code for values that a slice has once.
class ScalarCode {
 public:
  /// `leaves` gives the text of a leaf.
  template <class Leaves>
  ScalarCode(const Values& values, const std::vector<NodeId>& roots, const Leaves& leaves,
             std::set<std::string> taken)
      : names_(std::move(taken)) {
    for (const NodeId id : needed_for(values, roots, [](NodeId) { return false; })) {
      const Node& node = values[id];
      const bool is_leaf = node.arguments[0] < 0;
      std::string text = is_leaf ? leaves(id) : operation(node);
      if (is_leaf) {
        texts_[id] = std::move(text);
        continue;
      }
      const std::string name = names_.make(node.name, id);
      lines_ += fmt::format("    const {} {} = {};\n", cpp_type(node.kind), name, text);
      texts_[id] = name;
    }
  }

  const std::string& lines() const { return lines_; }
  const std::string& text(NodeId id) const { return texts_.at(id); }

 private:
  std::string operation(const Node& node) const {
    const auto a = [&] { return texts_.at(node.arguments[0]); };
    const auto b = [&] { return texts_.at(node.arguments[1]); };
    const auto c = [&] { return texts_.at(node.arguments[2]); };
    const bool whole = node.kind == ScalarKind::kInt;
    const auto call = [&](const char* f) { return fmt::format("{}({}, {})", f, a(), b()); };
    const auto infix = [&](const char* op) { return fmt::format("{} {} {}", a(), op, b()); };
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
        return whole ? fmt::format("whole_difference(0, {})", a()) : fmt::format("-{}", a());
      case Op::kAnd:
        return infix("&");
      case Op::kOr:
        return infix("|");
      case Op::kXor:
        return infix("^");
      case Op::kNot:
        return fmt::format("{}{}", whole ? "~" : "!", a());
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
        return fmt::format("{} ? {} : {}", a(), b(), c());
      case Op::kFloor:
        return fmt::format("__builtin_floor({})", a());
      case Op::kCeil:
        return fmt::format("__builtin_ceil({})", a());
      case Op::kAbs:
        return whole ? fmt::format("{0} < 0 ? whole_difference(0, {0}) : {0}", a())
                     : fmt::format("__builtin_fabs({})", a());
      case Op::kSqrt:
        return fmt::format("__builtin_sqrt({})", a());
      case Op::kMin:
        return fmt::format("{0} < {1} ? {0} : {1}", a(), b());
      case Op::kMax:
        return fmt::format("{0} > {1} ? {0} : {1}", a(), b());
      case Op::kToFloat:
        return fmt::format("static_cast<double>({})", a());
      case Op::kToInt:
        return fmt::format("to_whole({})", a());
      case Op::kToBits:
        return call("clamped_to_bits");
      default:
        throw std::logic_error("a scalar that is no operation");
    }
  }

  Names names_;
  std::map<NodeId, std::string> texts_;
  std::string lines_;
};

/// A value that code for elements takes from outside: a member of the object that holds the code.
struct Capture {
  NodeId id;
  std::string name;
};

/// Code for values that every element has, on lanes F.
class LaneCode {
 public:
  /// `leaves` gives the text of a leaf that depends on the element.
  template <class Leaves>
  LaneCode(const Values& values, const std::vector<NodeId>& roots, const Leaves& leaves)
      : values_(values), names_({"element", "value", "draws"}) {
    const auto stop = [&](NodeId id) { return !values.per_element(id); };
    const std::set<NodeId> needed = needed_for(values, roots, stop);
    for (const NodeId id : needed) {
      const Node& node = values[id];
      if (values.draws(id) && node.op == Op::kDraw) sites_.insert(node.integer);
      if (!stop(id) || values.is_constant(id)) continue;
      captures_.push_back({id, names_.make(node.name, id)});
      captured_[id] = captures_.back().name;
    }
    for (const NodeId id : needed) {
      if (stop(id)) continue;
      const Node& node = values[id];
      if (node.arguments[0] < 0) {
        texts_[id] = leaves(id);
        continue;
      }
      const std::string text = operation(node);
      const std::string name = names_.make(node.name, id);
      lines_ += fmt::format("      const {} {} = {};\n", lane_type(node.kind), name, text);
      texts_[id] = name;
    }
  }

  const std::string& lines() const { return lines_; }
  const std::vector<Capture>& captures() const { return captures_; }
  const std::set<std::int64_t>& sites() const { return sites_; }

  /// A value as lanes.
  std::string text(NodeId id) const {
    if (values_.per_element(id)) return texts_.at(id);
    const Node& node = values_[id];
    if (node.op == Op::kReal) return fmt::format("broadcast<F>({})", literal(node.real, true));
    if (node.op == Op::kInteger && node.kind == ScalarKind::kInt) {
      return fmt::format("broadcast_bits<F>({}u)", static_cast<std::uint32_t>(node.integer));
    }
    if (node.op == Op::kInteger) return fmt::format("every<F>({})", node.integer != 0);
    const std::string& name = captured_.at(id);
    if (node.kind == ScalarKind::kFloat) return fmt::format("broadcast<F>({})", name);
    if (node.kind == ScalarKind::kBool) return fmt::format("every<F>({})", name);
    return fmt::format("broadcast_bits<F>(static_cast<std::uint32_t>({}))", name);
  }

 private:
  /// A value that is one number for all lanes, as that number.
  std::string number(NodeId id) const {
    const Node& node = values_[id];
    return node.op == Op::kInteger ? fmt::format("{}", node.integer) : captured_.at(id);
  }

  std::string operation(const Node& node) const {
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
          return fmt::format("plus_uniform<F>({}, draws_{}, element)",
                             text(node.arguments[1 - draw]), part.integer);
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
        return of_bits ? fmt::format("select(less({0}, {1}), {0}, {1})", a(), b())
                       : call("smaller");
      case Op::kMax:
        return of_bits ? fmt::format("select(less({1}, {0}), {0}, {1})", a(), b()) : call("larger");
      case Op::kToFloat:
        return fmt::format("to_float({})", a());
      case Op::kToBits:
        return fmt::format("{}<F>({}, {})", of_bits ? "lanes_below_bits" : "lanes_clamped_to_bits",
                           a(), number(node.arguments[1]));
      default:
        throw std::logic_error("an element's value that is no operation");
    }
  }

  const Values& values_;
  Names names_;
  std::map<NodeId, std::string> texts_;
  std::map<NodeId, std::string> captured_;
  std::vector<Capture> captures_;
  std::set<std::int64_t> sites_;
  std::string lines_;
};

class Emitter {
 public:
  Emitter(const Program& program, const std::string& origin)
      : program_(program), encoder_(*program_.encoder), origin_(origin) {
    name_wire();
    passes_ = 1;
    for (const Reduction& reduction : encoder_.reductions) {
      passes_ = std::max(passes_, values_.level(reduction.element) + 1);
    }
  }

  std::string run() {
    std::string body;
    body += parameters() + scalars() + wire() + construction();
    for (int pass = 0; pass < passes_; ++pass) body += measure(pass);
    body += wire_of() + coder() + decoder();
    return fmt::format(
        "// Generated by hipress-compll from {}. Do not edit.\n"
        "#include \"kernels/export.hpp\"\n"
        "#include \"kernels/quantizer.hpp\"\n"
        "#include \"kernels/scalars.hpp\"\n\n"
        "namespace hipress::kernels::generated {{\n\n"
        "struct {} {{\n{}{}}};\n\n{}"
        "}}  // namespace hipress::kernels::generated\n\n"
        "HIPRESS_EXPORT_QUANTIZER({}, hipress::kernels::generated::{},\n"
        "                         {}, {})\n",
        origin_, struct_name(), properties(), body, declared_parameters(), export_name(program_),
        struct_name(),
        program_.parameters.empty()
            ? "nullptr"
            : "hipress::kernels::generated::k" + struct_name() + "Parameters",
        program_.parameters.size());
  }

 private:
  std::string struct_name() const {
    std::string name = program_.name;
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    return name;
  }

  // ---- leaves ----

  std::string parameter(std::int64_t number) const {
    return "parameter_" + program_.parameters[static_cast<std::size_t>(number)].name;
  }

  std::string scalar_leaf(NodeId id) const {
    const Node& node = values_[id];
    switch (node.op) {
      case Op::kInteger:
        return node.kind == ScalarKind::kBool ? (node.integer != 0 ? "true" : "false")
               : node.integer == INT64_MIN    ? "INT64_MIN"
                                              : fmt::format("std::int64_t{{{}}}", node.integer);
      case Op::kReal:
        return literal(node.real, false);
      case Op::kParameter:
        return parameter(node.integer);
      case Op::kSize:
        return "scalars.elements";
      case Op::kReduction:
        return "scalars." + reduction_name(node.integer);
      default:
        throw std::logic_error("a leaf that no slice has");
    }
  }

  std::string decoder_leaf(NodeId id) const {
    const Node& node = values_[id];
    if (node.op == Op::kSize) return "elements";
    if (node.op != Op::kField) return scalar_leaf(id);
    const std::string field = "wire." + wire_names_[static_cast<std::size_t>(node.integer)];
    return fmt::format("static_cast<{}>({})", cpp_type(node.kind), field);
  }

  std::string reduction_name(std::int64_t number) const {
    return fmt::format("reduction_{}", number);
  }

  std::string element_leaf(NodeId id) const {
    const Node& node = values_[id];
    if (node.op == Op::kGradient) return "value";
    if (node.op == Op::kDraw)
      return fmt::format("draw_uniform<F>(draws_{}, element)", node.integer);
    if (node.op == Op::kCode) return "static_cast<std::uint32_t>(code)";
    throw std::logic_error("a leaf that no element has");
  }

  // ---- parts of the struct ----

  std::string properties() const {
    const Values::Range bits = values_.range(encoder_.bits);
    const bool by_value = !values_.draws(encoder_.code) && !values_.by_slice(encoder_.code);
    // Messages of another format, algorithm or version of this compiler must not be taken for ours.
    std::uint32_t hash = 2166136261u;
    std::string format = program_.name;
    for (const Field& field : encoder_.fields)
      format += fmt::format(",{}", static_cast<int>(field.kind));
    for (const char c : format) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return fmt::format(
        "  static constexpr std::uint16_t kTag = {};\n"
        "  static constexpr int kLeastPlanes = {};\n"
        "  static constexpr int kMostPlanes = {};\n"
        "  static constexpr bool kErrorFeedback = {};\n"
        "  static constexpr bool kCodesByValueAlone = {};\n"
        "  static constexpr int kPasses = {};\n"
        "  static constexpr int kCodesAfter = {};\n\n",
        (hash ^ hash >> 16) & 0xffff, std::clamp<std::int64_t>(bits.least, 1, 8),
        std::clamp<std::int64_t>(bits.most, 1, 8), encoder_.error_feedback, by_value, passes_,
        values_.level(encoder_.code));
  }

  std::string parameters() const {
    std::string text;
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      const bool real = program_.parameters[i].kind == ScalarKind::kFloat;
      text += fmt::format("  {} {};\n", real ? "double" : "std::int64_t",
                          parameter(static_cast<std::int64_t>(i)));
    }
    return text.empty() ? text : text + "\n";
  }

  std::string declared_parameters() const {
    if (program_.parameters.empty()) return "";
    std::string rows;
    for (const ProgramParameter& p : program_.parameters) {
      rows += fmt::format("    {{\"{}\", {}, {}, {}, {}}},\n", p.name,
                          p.value ? fmt::format("{}", *p.value) : "__builtin_nan(\"\")", p.least,
                          p.most, p.kind != ScalarKind::kFloat);
    }
    return fmt::format(
        "[[maybe_unused]] constexpr DeclaredParameter k{}Parameters[] = {{\n{}}};\n\n",
        struct_name(), rows);
  }

  std::string scalars() const {
    std::string members = "    std::int64_t elements = 0;\n";
    for (std::size_t i = 0; i < encoder_.reductions.size(); ++i) {
      members +=
          fmt::format("    {} {} = 0;\n", cpp_type(values_[encoder_.reductions[i].element].kind),
                      reduction_name(static_cast<std::int64_t>(i)));
    }
    return fmt::format("  struct Scalars {{\n{}  }};\n", members);
  }

  void name_wire() {
    Names names;
    const std::vector<Field>& fields = encoder_.fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      wire_names_.push_back(
          names.make(fields[i].name.empty() ? fmt::format("field_{}", i) : fields[i].name, 0));
    }
  }

  /// Largest members first, so that there is no padding but at the end, where it is named: messages
  /// hold no undefined bytes.
  std::string wire() const {
    static constexpr int kBytes[] = {4, 8, 1, 4};
    static constexpr const char* kTypes[] = {"float", "std::int64_t", "std::uint8_t",
                                             "std::uint32_t"};
    std::string members;
    int bytes = 0, largest = 1;
    for (const int size : {8, 4, 1}) {
      for (std::size_t i = 0; i < encoder_.fields.size(); ++i) {
        const auto kind = static_cast<std::size_t>(encoder_.fields[i].kind);
        if (kBytes[kind] != size) continue;
        members += fmt::format("    {} {} = 0;\n", kTypes[kind], wire_names_[i]);
        bytes += size;
        largest = std::max(largest, size);
      }
    }
    if (bytes % largest != 0) {
      members += fmt::format("    std::uint8_t padding_[{}] = {{}};\n", largest - bytes % largest);
    }
    return fmt::format("  struct Wire {{\n{}  }};\n\n", members);
  }

  std::string construction() const {
    std::string initial;
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      const bool real = program_.parameters[i].kind == ScalarKind::kFloat;
      initial +=
          fmt::format("{}{}({})", i == 0 ? " : " : ", ", parameter(static_cast<std::int64_t>(i)),
                      real ? fmt::format("values[{}]", i) : fmt::format("to_whole(values[{}])", i));
    }
    const ScalarCode bits(values_, {encoder_.bits}, [&](NodeId id) { return scalar_leaf(id); }, {});
    return fmt::format(
        "  explicit {}([[maybe_unused]] const double* values){} {{}}\n"
        "  HIPRESS_LANES int planes() const {{\n{}    return static_cast<int>({});\n  }}\n"
        "  HIPRESS_LANES Scalars begin(std::int64_t elements) const {{\n"
        "    Scalars scalars;\n    scalars.elements = elements;\n    return scalars;\n  }}\n\n",
        struct_name(), initial, bits.lines(), bits.text(encoder_.bits));
  }

  /// Members for what code takes from outside, and their values, in order.
  struct Captured {
    std::string members, setup, values;
  };

  template <class Leaves>
  Captured captured(const LaneCode& code, const Leaves& leaves, const char* indent) const {
    Captured made;
    std::vector<NodeId> ids;
    for (const Capture& capture : code.captures()) ids.push_back(capture.id);
    const ScalarCode scalar(values_, ids, leaves,
                            {"scalars", "draws", "wire", "elements", "values"});
    made.setup = scalar.lines();
    for (const Capture& capture : code.captures()) {
      const ScalarKind kind = values_[capture.id].kind;
      const bool real = kind == ScalarKind::kFloat;
      made.members +=
          fmt::format("{}{} {};\n", indent, real ? "float" : cpp_type(kind), capture.name);
      const std::string& text = scalar.text(capture.id);
      made.values += fmt::format("{}{}", made.values.empty() ? "" : ", ",
                                 real ? fmt::format("static_cast<float>({})", text) : text);
    }
    for (const std::int64_t site : code.sites()) {
      made.members += fmt::format("{}DrawStream draws_{};\n", indent, site);
      made.values +=
          fmt::format("{}stream_of_site(draws, {})", made.values.empty() ? "" : ", ", site);
    }
    return made;
  }

  std::string measure(int pass) const {
    std::vector<NodeId> elements;
    std::vector<std::size_t> numbers;
    std::string operations;
    for (std::size_t i = 0; i < encoder_.reductions.size(); ++i) {
      const Reduction& reduction = encoder_.reductions[i];
      if (values_.level(reduction.element) != pass) continue;
      static constexpr const char* kNames[] = {"Sum", "WholeSum", "Minimum", "Maximum"};
      operations += fmt::format(", {}", kNames[static_cast<int>(reduction.kind)]);
      elements.push_back(reduction.element);
      numbers.push_back(i);
    }
    const auto leaf = [&](NodeId id) { return scalar_leaf(id); };
    const LaneCode code(values_, elements, [&](NodeId id) { return element_leaf(id); });
    const Captured outside = captured(code, leaf, "    ");
    std::string result = "{}";
    for (std::size_t i = elements.size(); i-- > 0;) {
      result = fmt::format("{{{}, {}}}", code.text(elements[i]), result);
    }
    std::string text = fmt::format(
        "  struct Measure{0} {{\n{1}"
        "    template <class F>\n    using Partial = Partials<F{2}>;\n"
        "    template <class F>\n"
        "    HIPRESS_LANES Partial<F> of([[maybe_unused]] F value,\n"
        "                                [[maybe_unused]] std::int64_t element) const {{\n"
        "{3}      return {4};\n    }}\n  }};\n"
        "  HIPRESS_LANES Measure{0} measure(Pass<{0}>, [[maybe_unused]] const Scalars& scalars,\n"
        "                                 [[maybe_unused]] const DrawStream& draws) const {{\n"
        "{5}    return {{{6}}};\n  }}\n",
        pass, outside.members, operations, code.lines(), result, outside.setup, outside.values);
    std::vector<NodeId> initial;
    for (const std::size_t number : numbers) {
      if (adds_initial(number)) initial.push_back(encoder_.reductions[number].initial);
    }
    const ScalarCode first(values_, initial, leaf, {"scalars", "found"});
    text += fmt::format(
        "  HIPRESS_LANES void conclude(Pass<{0}>,\n"
        "                              [[maybe_unused]] const Measure{0}::Partial<double>& found,\n"
        "                              [[maybe_unused]] Scalars& scalars) const {{\n{1}",
        pass, first.lines());
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      text += fmt::format("    scalars.{} = {};\n",
                          reduction_name(static_cast<std::int64_t>(numbers[k])),
                          concluded(numbers[k], k, first));
    }
    return text + "  }\n\n";
  }

  bool adds_initial(std::size_t number) const {
    const Reduction& reduction = encoder_.reductions[number];
    if (reduction.kind == ReductionKind::kMinimum || reduction.kind == ReductionKind::kMaximum) {
      return false;  // slices are never empty here
    }
    const Node& initial = values_[reduction.initial];
    return !(values_.is_constant(reduction.initial) && initial.integer == 0 && initial.real == 0);
  }

  /// Adding 0 makes -0 a 0, so that the order of equals does not show.
  std::string concluded(std::size_t number, std::size_t k, const ScalarCode& first) const {
    const Reduction& reduction = encoder_.reductions[number];
    const std::string initial = adds_initial(number) ? first.text(reduction.initial) : "";
    if (reduction.kind == ReductionKind::kWholeSum) {
      const std::string sum = fmt::format("wrapped(number<{}>(found))", k);
      return initial.empty() ? sum : fmt::format("whole_sum({}, {})", sum, initial);
    }
    return fmt::format("number<{}>(found) + {}", k, initial.empty() ? "0.0" : initial);
  }

  std::string wire_of() const {
    const ScalarCode code(values_, encoder_.field_values,
                          [&](NodeId id) { return scalar_leaf(id); }, {"scalars", "wire"});
    static constexpr const char* kTypes[] = {"float", "std::int64_t", "std::uint8_t",
                                             "std::uint32_t"};
    std::string text = fmt::format(
        "  HIPRESS_LANES Wire wire([[maybe_unused]] const Scalars& scalars) const {{\n{}"
        "    Wire wire;\n",
        code.lines());
    for (std::size_t i = 0; i < encoder_.fields.size(); ++i) {
      text += fmt::format("    wire.{} = static_cast<{}>({});\n", wire_names_[i],
                          kTypes[static_cast<int>(encoder_.fields[i].kind)],
                          code.text(encoder_.field_values[i]));
    }
    return text + "    return wire;\n  }\n\n";
  }

  std::string coder() {
    std::vector<NodeId> roots;
    const Values::Range bits = values_.range(encoder_.bits);
    const bool by_planes = bits.least == bits.most && chooses_constants(encoder_.code);
    for (std::int64_t p = 0; by_planes && p < bits.most; ++p)
      roots.push_back(plane(encoder_.code, p));
    if (!by_planes) roots.push_back(encoder_.code);
    const LaneCode code(values_, roots, [&](NodeId id) { return element_leaf(id); });
    const Captured outside = captured(
        code, [&](NodeId id) { return scalar_leaf(id); }, "    ");
    std::string planes;
    for (std::size_t p = 0; by_planes && p < roots.size(); ++p) {
      planes += fmt::format("      planes[{}] = {};\n", p, code.text(roots[p]));
    }
    if (!by_planes) {
      planes =
          fmt::format("      for (int p = 0; p < kPlanes; ++p) planes[p] = has_bit({}, 1u << p);\n",
                      code.text(encoder_.code));
    }
    return fmt::format(
        "  struct Coder {{\n{0}"
        "    template <int kPlanes, class F>\n"
        "    HIPRESS_LANES void code([[maybe_unused]] F value, [[maybe_unused]] std::int64_t "
        "element,\n"
        "                            MaskLanes<F> (&planes)[kPlanes]) const {{\n"
        "{1}{2}    }}\n  }};\n"
        "  HIPRESS_LANES Coder coder([[maybe_unused]] const Scalars& scalars,\n"
        "                            [[maybe_unused]] const DrawStream& draws) const {{\n"
        "{3}    return {{{4}}};\n  }}\n\n",
        outside.members, code.lines(), planes, outside.setup, outside.values);
  }

  /// A value that is one of some constants, by conditions.
  bool chooses_constants(NodeId id) const {
    for (const NodeId part : needed_for(values_, {id}, [&](NodeId at) {
           return values_[at].op != Op::kSelect || values_[at].kind != ScalarKind::kInt;
         })) {
      const Node& node = values_[part];
      if (node.kind == ScalarKind::kInt && node.op != Op::kSelect && node.op != Op::kInteger) {
        return false;
      }
    }
    return true;
  }

  /// Bit p of such a value, as a condition.
  NodeId plane(NodeId id, std::int64_t p) {
    const Node node = values_[id];
    if (node.op == Op::kInteger) return values_.boolean((node.integer >> p & 1) != 0);
    const NodeId yes = plane(node.arguments[1], p), no = plane(node.arguments[2], p);
    return values_.select(node.arguments[0], yes, no);
  }

  std::string decoder() const {
    if (!program_.decoder) {
      return "  /// There is no decoder: every message is refused.\n"
             "  HIPRESS_LANES bool plausible(const Wire&) const { return false; }\n"
             "  struct Levels {\n"
             "    HIPRESS_LANES float operator()(int) const { return not_a_number(); }\n  };\n"
             "  HIPRESS_LANES Levels levels(const Wire&, std::int64_t) const { return {}; }\n";
    }
    const Decoder& decoder = *program_.decoder;
    const auto leaf = [&](NodeId id) { return decoder_leaf(id); };
    const ScalarCode bits(values_, {decoder.bits}, leaf, {"wire"});
    std::string plausible;
    for (std::size_t i = 0; i < encoder_.fields.size(); ++i) {
      if (encoder_.fields[i].kind == FieldKind::kFloat) {
        plausible += fmt::format("is_finite(wire.{}) && ", wire_names_[i]);
      }
    }
    const LaneCode code(values_, {decoder.level}, [&](NodeId id) { return element_leaf(id); });
    const Captured outside = captured(code, leaf, "    ");
    return fmt::format(
        "  HIPRESS_LANES bool plausible([[maybe_unused]] const Wire& wire) const {{\n"
        "{0}    return {1}{2} == planes();\n  }}\n"
        "  struct Levels {{\n{3}"
        "    HIPRESS_LANES float operator()([[maybe_unused]] int code) const {{\n"
        "      using F = float;\n{4}      return {5};\n    }}\n  }};\n"
        "  HIPRESS_LANES Levels levels([[maybe_unused]] const Wire& wire,\n"
        "                              [[maybe_unused]] std::int64_t elements) const {{\n"
        "{6}    return {{{7}}};\n  }}\n",
        bits.lines(), plausible, bits.text(decoder.bits), outside.members, code.lines(),
        code.text(decoder.level), outside.setup, outside.values);
  }

  Program program_;
  Values& values_ = program_.values;
  const Encoder& encoder_;
  const std::string origin_;
  std::vector<std::string> wire_names_;
  int passes_ = 1;
};

}  // namespace

std::string export_name(const Program& program) {
  std::string name = program.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string emit(const Program& program, const std::string& origin) {
  if (!program.encoder) throw std::invalid_argument("a program without an encoder");
  return Emitter(program, origin).run();
}

}  // namespace hipress::compll
