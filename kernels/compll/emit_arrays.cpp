// Generates an array program: a struct as in kernels/frames/array_program.hpp.

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "kernels/compll/emit.hpp"
#include "kernels/compll/emitter.hpp"

namespace hipress::compll {

namespace {

/// Maximum number of lines in the bodies of loops, equal to Emitter::kMaxLines.
constexpr int kMaxLines = 20000;

/// Statements that compute values of an encoder or decoder, each array in its own loop. A value's
/// id is larger than the ids of all values that it depends on, also through the program's tables
/// (domains, reductions …), so values are computed in the order of their ids.
class Statements {
 public:
  enum class Side : std::uint8_t { kEncoder, kDecoder };

  /// `leaf` returns the code of scalar leaves that are neither a length nor a reduction.
  template <class Leaf>
  Statements(const Program& program, Side side, const Leaf& leaf, const std::vector<NodeId>& roots)
      : program_(program), values_(program.values), side_(side) {
    for (const NodeId id : closure(roots)) {
      const Node& node = values_[id];
      if (values_.open(id)) continue;
      prepare(node);
      if (values_.per_element(id)) continue;
      if (node.arguments[0] >= 0) {
        // No name of the program, the frame or its functions has this prefix.
        const std::string name = "s_" + names_.make(node.name, id);
        text_ += fmt::format("    const {} {} = {};\n", cpp_type(node.kind), name, scalar(node));
        scalars_[id] = name;
      } else if (node.op == Op::kReduction) {
        scalars_[id] = fmt::format("reduction_{}", node.integer);
      } else if (node.op == Op::kLength) {
        scalars_[id] = fmt::format("length_{}", node.integer);
      } else {
        scalars_[id] = leaf(id);
      }
    }
  }

  const std::string& lines() const { return text_; }
  const std::string& text(NodeId id) const { return scalars_.at(id); }

  /// Code of a function that computes value `id` of element i: "[&](std::int64_t i) { … }".
  std::string function(NodeId id, const char* index = "i") const {
    return fmt::format("[&]([[maybe_unused]] std::int64_t {}) {{\n{}    }}", index,
                       body(id, index));
  }

  std::string length(int domain) const {
    if (domain == 0) return "elements";
    const Domain& of = at(domain);
    if (of.kind == DomainKind::kSorted) return length(of.source);
    return fmt::format("length_{}", domain);
  }

 private:
  const Domain& at(int domain) const { return program_.domains[static_cast<std::size_t>(domain)]; }
  template <class Table>
  static const auto& row(const Table& table, std::int64_t number) {
    return table[static_cast<std::size_t>(number)];
  }

  /// All values that `open` depends on, dependencies first.
  std::set<NodeId> closure(std::vector<NodeId> open) const {
    std::set<NodeId> needed;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (id < 0 || !needed.insert(id).second) continue;
      const Node& node = values_[id];
      for (const NodeId argument : node.arguments) open.push_back(argument);
      add_domain(node.domain, open);
      switch (node.op) {
        case Op::kReduction: {
          const Reduction& of = row(program_.encoder->reductions, node.integer);
          open.insert(open.end(), {of.element, of.initial, of.fold});
          add_domain(of.domain, open);
          break;
        }
        case Op::kLength:
          add_domain(static_cast<int>(node.integer), open);
          break;
        case Op::kKept:
          open.push_back(row(at(node.domain).kept, node.integer));
          break;
        case Op::kAt:
          open.push_back(row(program_.arrays, node.integer).element);
          add_domain(row(program_.arrays, node.integer).domain, open);
          break;
        case Op::kIn:
          open.push_back(row(program_.marks, node.integer).index);
          add_domain(row(program_.marks, node.integer).source, open);
          break;
        case Op::kScattered:
          open.push_back(row(program_.scatters, node.integer).index);
          open.push_back(row(program_.scatters, node.integer).value);
          add_domain(row(program_.scatters, node.integer).source, open);
          break;
        default:
          break;
      }
    }
    return needed;
  }

  void add_domain(int domain, std::vector<NodeId>& open) const {
    while (domain > 0 && at(domain).kind != DomainKind::kExtracted) {
      open.push_back(at(domain).node);
      open.push_back(at(domain).count);
      domain = at(domain).source;
    }
  }

  /// Generates the array or scalar that a leaf reads, unless this has been done already.
  void prepare(const Node& node) {
    prepare_domain(node.domain);
    switch (node.op) {
      case Op::kReduction:
        if (is_new("reduction", node.integer)) reduce(node.integer);
        break;
      case Op::kLength:
        prepare_domain(static_cast<int>(node.integer));
        break;
      case Op::kKept:
        if (is_new(fmt::format("kept_{}", node.domain), node.integer)) keep(node);
        break;
      case Op::kAt:
        if (is_new("array", node.integer)) store(node.integer);
        break;
      case Op::kIn:
        if (is_new("marked", node.integer)) mark(node.integer);
        break;
      case Op::kScattered:
        if (is_new("scattered", node.integer)) scatter(node.integer);
        break;
      case Op::kPart:
      case Op::kCode:
        if (is_new("part", part_of(node))) {
          const bool real = row(program_.decoder->parts, part_of(node)).kind == FieldKind::kFloat;
          add("const auto part_{} = message.{}({});", part_of(node), real ? "floats" : "numbers",
              part_of(node));
        }
        break;
      case Op::kState:
        if (is_new("state", node.integer)) {
          add("const float* const state_{} = run.state({});", node.integer, node.integer);
        }
        break;
      case Op::kDraw:
        if (is_new("draws", node.integer)) {
          add("const DrawStream draws_{} = stream_of_site(run.draws(), {});", node.integer,
              node.integer);
        }
        break;
      default:
        break;
    }
  }

  static std::int64_t part_of(const Node& node) { return node.op == Op::kCode ? 0 : node.integer; }

  bool is_new(const std::string& kind, std::int64_t number) {
    return made_.insert({kind, number}).second;
  }

  template <class... Arguments>
  void add(const char* format, const Arguments&... arguments) {
    text_ += "    " + fmt::format(fmt::runtime(format), arguments...) + "\n";
  }

  void prepare_domain(int domain) {
    if (domain <= 0 || !is_new("domain", domain)) return;
    const Domain& of = at(domain);
    if (of.kind == DomainKind::kExtracted) {
      add("const std::int64_t length_{} = message.length({});", domain,
          message_length(program_, of.source));
      return;
    }
    if (of.kind == DomainKind::kRange) {
      // Its length is a scalar with a smaller id, so it exists already.
      add("const std::int64_t length_{} = checked_length({});", domain, scalars_.at(of.node));
      return;
    }
    prepare_domain(of.source);
    const std::string source = length(of.source);
    switch (of.kind) {
      case DomainKind::kFilter:
        add("const auto origin_{} = filtered({}, {});", domain, source, function(of.node));
        break;
      case DomainKind::kLargest:
        add("const auto origin_{} = largest({}, {}, {});", domain, source, scalars_.at(of.count),
            function(of.node));
        break;
      default:
        add("const auto origin_{} = sorted({}, {}, {});", domain, source, of.descending,
            function(of.node));
        break;
    }
    if (of.kind == DomainKind::kSorted) return;
    add("const auto length_{} = static_cast<std::int64_t>(origin_{}.size());", domain, domain);
  }

  void keep(const Node& node) {
    const NodeId value = row(at(node.domain).kept, node.integer);
    add("const auto kept_{}_{} = made<{}>({}, [&](std::int64_t k) {{\n"
        "      const std::int64_t i = origin_{}[static_cast<std::size_t>(k)];\n{}    }});",
        node.domain, node.integer, stored(node.kind), length(node.domain), node.domain,
        body(value, "i"));
  }

  void store(std::int64_t number) {
    const Array& array = row(program_.arrays, number);
    prepare_domain(array.domain);
    add("const auto array_{} = made<{}>({}, {});", number, stored(values_[array.element].kind),
        length(array.domain), function(array.element));
  }

  void mark(std::int64_t number) {
    const Mark& made = row(program_.marks, number);
    prepare_domain(made.source);
    prepare_domain(made.target);
    add("const auto marked_{} = marked({}, {}, {});", number, length(made.target),
        length(made.source), function(made.index));
  }

  void scatter(std::int64_t number) {
    const Scatter& made = row(program_.scatters, number);
    prepare_domain(made.source);
    prepare_domain(made.target);
    add("bool inside_{} = true;", number);
    add("const auto scattered_{} = scattered<{}>({}, {}, {},\n    {}, inside_{});", number,
        stored(values_[made.value].kind), length(made.target), length(made.source),
        function(made.index), function(made.value), number);
    if (side_ == Side::kDecoder) add("if (!inside_{}) return false;", number);
  }

  void reduce(std::int64_t number) {
    const Reduction& of = row(program_.encoder->reductions, number);
    prepare_domain(of.domain);
    const std::string count = length(of.domain), element = function(of.element);
    const std::string& initial = scalars_.at(of.initial);
    switch (of.kind) {
      case ReductionKind::kSum:
        return add("const double reduction_{} = sum_of({}, {}) + {};", number, count, element,
                   initial);
      case ReductionKind::kWholeSum:
        return add("const std::int64_t reduction_{} = folded<std::int64_t>({}, {}, {}, whole_sum);",
                   number, count, initial, element);
      case ReductionKind::kMinimum:
      case ReductionKind::kMaximum: {
        // Start with the first element; the initial value is only the result for an empty array.
        const char* const keep = of.kind == ReductionKind::kMinimum ? "smaller" : "larger";
        add("const auto element_{} = {};", number, element);
        return add(
            "const double reduction_{0} = {1} == 0 ? {2} : 0.0 + folded<float>({1}, "
            "element_{0}(0), element_{0},\n        [](float a, float b) {{ return {3}(b, a); }});",
            number, count, initial, keep);
      }
      case ReductionKind::kFold:
        return add("const auto reduction_{} = folded<{}>({}, static_cast<{}>({}), {},\n    {});",
                   number, stored(values_[of.element].kind), count,
                   stored(values_[of.element].kind), initial, element, fold(of));
    }
  }

  /// Code of a reduction's lambda.
  std::string fold(const Reduction& of) const {
    const char* const type = stored(values_[of.element].kind);
    Body made = {.values = {}, .lines = {}};
    const std::string result = value(of.fold, "i", made);
    return fmt::format(
        "[&]([[maybe_unused]] {0} first, [[maybe_unused]] {0} second) {{\n{1}      return {2};\n"
        "    }}",
        type, made.lines, result);
  }

  static const char* stored(ScalarKind kind) {
    return kind == ScalarKind::kFloat  ? "float"
           : kind == ScalarKind::kBool ? "std::uint8_t"
                                       : "std::int64_t";
  }
  static const char* element_type(ScalarKind kind) {
    return kind == ScalarKind::kBool ? "bool" : stored(kind);
  }

  // ---- code for one element ----

  struct Body {
    std::map<NodeId, std::string> values;
    std::string lines;
  };

  std::string body(NodeId id, const char* index) const {
    Body made;
    const std::string result = value(id, index, made);
    return fmt::format("{}      return {};\n", made.lines, result);
  }

  std::string value(NodeId root, const char* index, Body& made) const {
    const auto outside = [&](NodeId id) { return !values_.per_element(id) && !values_.open(id); };
    Names names;
    for (const NodeId id : needed_for(values_, {root}, outside)) {
      const Node& node = values_[id];
      if (outside(id)) {
        made.values[id] = captured(id);
        continue;
      }
      const bool leaf = node.arguments[0] < 0;
      std::string text;
      if (leaf) {
        text = element_leaf(node, index);
      } else if (node.op == Op::kAt) {
        text = fmt::format("element_at(array_{}, {})", node.integer,
                           made.values.at(node.arguments[0]));
      } else {
        const auto argument = [&](int i) {
          return node.arguments[i] < 0 ? std::string() : made.values.at(node.arguments[i]);
        };
        text = number_operation(node, Precision::kSingle, {argument(0), argument(1), argument(2)});
      }
      if (++lines_ > kMaxLines) {
        throw std::length_error(
            "the program is too large once every loop has its arithmetic; let it compute less");
      }
      const std::string name = names.make("", id);
      made.lines += fmt::format("      const {} {} = {};\n", element_type(node.kind), name, text);
      made.values[id] = name;
    }
    return made.values.at(root);
  }

  /// Code of a scalar that the code of an element uses. There, floats are fp32.
  std::string captured(NodeId id) const {
    const Node& node = values_[id];
    if (node.op == Op::kReal) return literal(node.real, true);
    const std::string& text = scalars_.at(id);
    return node.kind == ScalarKind::kFloat ? fmt::format("static_cast<float>({})", text) : text;
  }

  static std::string element_leaf(const Node& node, const char* index) {
    const auto in = [&](const std::string& array) {
      return fmt::format("{}[static_cast<std::size_t>({})]", array, index);
    };
    switch (node.op) {
      case Op::kIndex:
        return index;
      case Op::kGradient:
        return in("gradient");
      case Op::kState:
        return in(fmt::format("state_{}", node.integer));
      case Op::kDraw:
        return fmt::format("draw_uniform<float>(draws_{}, {})", node.integer, index);
      case Op::kKept:
        return in(fmt::format("kept_{}_{}", node.domain, node.integer));
      case Op::kPart:
      case Op::kCode:
        return in(fmt::format("part_{}", part_of(node)));
      case Op::kIn:
        return in(fmt::format("marked_{}", node.integer)) + " != 0";
      case Op::kScattered:
        return in(fmt::format("scattered_{}", node.integer));
      case Op::kFirst:
        return "first";
      case Op::kSecond:
        return "second";
      default:
        throw std::logic_error("a leaf that no element has");
    }
  }

  std::string scalar(const Node& node) const {
    if (node.op == Op::kAt) {
      const std::string element =
          fmt::format("element_at(array_{}, {})", node.integer, scalars_.at(node.arguments[0]));
      return node.kind == ScalarKind::kFloat  ? fmt::format("static_cast<double>({})", element)
             : node.kind == ScalarKind::kBool ? element + " != 0"
                                              : element;
    }
    const auto argument = [&](int i) {
      return node.arguments[i] < 0 ? std::string() : scalars_.at(node.arguments[i]);
    };
    return number_operation(node, Precision::kDouble, {argument(0), argument(1), argument(2)});
  }

 public:
  /// Index in message_domains() of the domain with this domain's length; -1 for the slice's length.
  static int message_length(const Program& program, int domain) {
    const std::vector<int> domains = message_domains(program);
    const auto found = std::find(domains.begin(), domains.end(), program.length_domain(domain));
    return found == domains.end() ? -1 : static_cast<int>(found - domains.begin());
  }

  /// Domains whose lengths a message holds: those of its arrays, each once, without the slice.
  static std::vector<int> message_domains(const Program& program) {
    std::vector<int> domains;
    for (const Part& part : program.encoder->parts) {
      const int domain = program.length_domain(part.domain);
      if (domain != 0 && std::find(domains.begin(), domains.end(), domain) == domains.end()) {
        domains.push_back(domain);
      }
    }
    return domains;
  }

 private:
  const Program& program_;
  const Values& values_;
  const Side side_;
  Names names_;
  std::string text_;
  std::map<NodeId, std::string> scalars_;
  std::set<std::pair<std::string, std::int64_t>> made_;
  mutable int lines_ = 0;  ///< lines of element code
};

class ArrayEmitter : Emitter {
 public:
  ArrayEmitter(const Program& program, const io::Digest& sources) : Emitter(program, sources) {}

  std::string run() {
    return file(
        properties() + parameters() + wire() + constructor() + finite() + layout() + encode() +
            decode(),
        "#include \"kernels/frames/array_program.hpp\"\n#include \"kernels/export/export.hpp\"\n",
        "HIPRESS_EXPORT_ARRAYS");
  }

 private:
  std::string properties() const {
    return fmt::format(
        "  static constexpr std::uint16_t kTag = {};\n"
        "  static constexpr int kStates = {};\n"
        "  static constexpr bool kErrorFeedback = {};\n\n",
        tag(), encoder_.states.size(), encoder_.error_feedback);
  }

  std::string finite() const {
    return fmt::format(
        "  static bool finite([[maybe_unused]] const Wire& wire) {{ return {}true; }}\n",
        finite_wire());
  }

  /// Maximal length of a domain, as a value of size and parameters.
  NodeId most(int domain) {
    if (domain == 0) return values_.leaf(Op::kSize, ScalarKind::kInt);
    const Domain of = program_.domains[static_cast<std::size_t>(domain)];
    const NodeId none = values_.integer(0);
    if (of.kind == DomainKind::kRange) return values_.make(Op::kMax, of.node, none);
    if (of.kind == DomainKind::kLargest && !values_.measured(of.count)) {
      const NodeId count = values_.make(Op::kMax, of.count, none);
      return bounded(of.source) ? values_.make(Op::kMin, count, most(of.source)) : count;
    }
    return most(of.source);
  }

  /// True if the maximal length of a domain is known before encoding.
  bool bounded(int domain) const {
    if (domain == 0) return true;
    const Domain& of = program_.domains[static_cast<std::size_t>(domain)];
    if (of.kind == DomainKind::kRange) return !values_.measured(of.node);
    if (of.kind == DomainKind::kLargest && !values_.measured(of.count)) return true;
    return bounded(of.source);
  }

  std::string layout() {
    std::vector<NodeId> roots;
    std::vector<NodeId> lengths;
    for (const int domain : Statements::message_domains(program_)) {
      lengths.push_back(most(domain));
    }
    roots = lengths;
    for (const Part& part : encoder_.parts) {
      if (part.bits >= 0) roots.push_back(part.bits);
    }
    const ScalarCode code(values_, roots, [&](NodeId id) {
      return values_[id].op == Op::kSize ? std::string("elements") : scalar_leaf(id);
    });
    std::string list, parts;
    for (const NodeId id : lengths) {
      list += fmt::format("{}checked_length({})", list.empty() ? "" : ", ", code.text(id));
    }
    static constexpr const char* kKinds[] = {"kFloat", "kInt", "kByte", "kWord"};
    for (const Part& part : encoder_.parts) {
      parts += fmt::format("    layout.add(PartKind::{}, {}, {}, elements);\n",
                           kKinds[static_cast<int>(part.kind)],
                           Statements::message_length(program_, part.domain),
                           part.bits < 0 ? "0" : code.text(part.bits));
    }
    return fmt::format(
        "  ArrayLayout layout(std::int64_t elements) const {{\n{}"
        "    ArrayLayout layout(sizeof(Wire), {{{}}});\n{}    return layout;\n  }}\n\n",
        code.lines(), list, parts);
  }

  std::string encode() const {
    std::vector<NodeId> roots = encoder_.field_values;
    for (const Part& part : encoder_.parts) roots.push_back(part.value);
    for (const StateArray& state : encoder_.states) roots.push_back(state.next);
    // An index of each domain makes Statements compute its length, even if no value uses it.
    const std::vector<int> domains = Statements::message_domains(program_);
    for (const int domain : domains) {
      roots.push_back(values_.element(Op::kIndex, ScalarKind::kInt, 0, domain));
    }
    const Statements code(
        program_, Statements::Side::kEncoder,
        [&](NodeId id) {
          return values_[id].op == Op::kSize ? std::string("elements") : scalar_leaf(id);
        },
        roots);
    std::string text = fmt::format(
        "  void encode(ArrayEncoder<Wire>& run) const {{\n"
        "    [[maybe_unused]] const std::int64_t elements = run.elements();\n"
        "    [[maybe_unused]] const float* const gradient = run.gradient();\n"
        "    [[maybe_unused]] Wire& wire = run.wire;\n{}{}",
        code.lines(), fill_wire(code));
    for (std::size_t i = 0; i < domains.size(); ++i) {
      text += fmt::format("    run.length({}, {});\n", i, code.length(domains[i]));
    }
    for (std::size_t i = 0; i < encoder_.parts.size(); ++i) {
      const Part& part = encoder_.parts[i];
      text += fmt::format("    run.{}({}, {}, {});\n",
                          part.kind == FieldKind::kFloat ? "floats" : "numbers", i,
                          code.length(part.domain), code.function(part.value));
    }
    for (std::size_t i = 0; i < encoder_.states.size(); ++i) {
      text += fmt::format("    const auto next_{} = made<float>(elements, {});\n", i,
                          code.function(encoder_.states[i].next));
    }
    for (std::size_t i = 0; i < encoder_.states.size(); ++i) {
      text += fmt::format("    run.keep({0}, next_{0});\n", i);
    }
    return text + "  }\n\n";
  }

  std::string decode() const {
    if (!program_.decoder) {
      return "  /// There is no decoder: every message is refused.\n"
             "  bool decode(const ArrayMessage<Wire>&, float*) const { return false; }\n";
    }
    const Statements code(program_, Statements::Side::kDecoder,
                          [&](NodeId id) { return decoder_leaf(id); }, {program_.decoder->level});
    return fmt::format(
        "  bool decode([[maybe_unused]] const ArrayMessage<Wire>& message, float* decoded) const "
        "{{\n"
        "    [[maybe_unused]] const Wire& wire = message.wire;\n"
        "    if (!finite(wire)) return false;\n"
        "    [[maybe_unused]] const std::int64_t elements = message.elements();\n{}"
        "    const auto level = {};\n"
        "    for (std::int64_t i = 0; i < elements; ++i) decoded[i] = level(i);\n"
        "    return true;\n  }}\n",
        code.lines(), code.function(program_.decoder->level));
  }
};

}  // namespace

std::string emit_arrays(const Program& program, const io::Digest& sources) {
  return ArrayEmitter(program, sources).run();
}

}  // namespace hipress::compll
