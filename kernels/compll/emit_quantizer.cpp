// Generates a quantiser: a struct as in kernels/frames/quantizer.hpp.

#include <algorithm>
#include <map>
#include <stdexcept>

#include "kernels/compll/emit.hpp"
#include "kernels/compll/emitter.hpp"

namespace hipress::compll {

namespace {

class QuantizerEmitter : Emitter {
 public:
  QuantizerEmitter(const Program& program, const io::Digest& sources) : Emitter(program, sources) {
    for (const Reduction& reduction : encoder_.reductions) {
      passes_ = std::max(passes_, values_.passes_before(reduction.element) + 1);
    }
  }

  std::string run() {
    std::string body = properties() + parameters() + scalars() + wire() + finite() + construction();
    for (int pass = 0; pass < passes_; ++pass) body += measure(pass);
    body += wire_of() + coder() + decoder();
    return file(body,
                "#include \"kernels/export/export.hpp\"\n"
                "#include \"kernels/frames/quantizer.hpp\"\n"
                "#include \"kernels/frames/scalars.hpp\"\n",
                "HIPRESS_EXPORT_QUANTIZER");
  }

 private:
  std::string properties() const {
    const Values::Range bits = values_.range(encoder_.bits);
    const bool by_value = !values_.draws(encoder_.code) && !values_.by_slice(encoder_.code);
    return fmt::format(
        "  static constexpr std::uint16_t kTag = {};\n"
        "  static constexpr int kMinPlanes = {};\n"
        "  static constexpr int kMaxPlanes = {};\n"
        "  static constexpr bool kErrorFeedback = {};\n"
        "  static constexpr bool kCodesByValueAlone = {};\n"
        "  static constexpr int kPasses = {};\n"
        "  static constexpr int kCodesAfter = {};\n\n",
        tag(), std::clamp<std::int64_t>(bits.least, 1, 8),
        std::clamp<std::int64_t>(bits.most, 1, 8), encoder_.error_feedback, by_value, passes_,
        values_.passes_before(encoder_.code));
  }

  std::string finite() const {
    return fmt::format(
        "  HIPRESS_LANES static bool finite([[maybe_unused]] const Wire& wire) {{\n"
        "    return {}true;\n  }}\n\n",
        finite_wire());
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

  std::string construction() const {
    const ScalarCode bits(values_, {encoder_.bits}, [&](NodeId id) { return scalar_leaf(id); });
    return fmt::format(
        "{}"
        "  HIPRESS_LANES int planes() const {{\n{}    return static_cast<int>({});\n  }}\n"
        "  HIPRESS_LANES Scalars begin(std::int64_t elements) const {{\n"
        "    Scalars scalars;\n    scalars.elements = elements;\n    return scalars;\n  }}\n\n",
        constructor(), bits.lines(), bits.text(encoder_.bits));
  }

  std::string measure(int pass) const {
    std::vector<NodeId> elements;
    std::vector<std::size_t> numbers;
    std::string operations;
    for (std::size_t i = 0; i < encoder_.reductions.size(); ++i) {
      const Reduction& reduction = encoder_.reductions[i];
      if (values_.passes_before(reduction.element) != pass) continue;
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
    const ScalarCode first(values_, initial, leaf);
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

  /// Code of a reduction's result. Adding 0 turns -0 into 0: the sign would depend on the order.
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
                          [&](NodeId id) { return scalar_leaf(id); });
    return fmt::format(
        "  HIPRESS_LANES Wire wire([[maybe_unused]] const Scalars& scalars) const {{\n{}"
        "    Wire wire;\n{}    return wire;\n  }}\n\n",
        code.lines(), fill_wire(code));
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

  /// True if an int is a choice (kSelect, maybe nested) among constants.
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

  /// Bit p, as a condition, of a value that chooses constants. Shared parts are visited once.
  NodeId plane(NodeId root, std::int64_t p) {
    std::map<NodeId, NodeId> planes;
    for (const NodeId id : needed_for(values_, {root}, [&](NodeId at) {
           return values_[at].kind != ScalarKind::kInt || values_[at].op != Op::kSelect;
         })) {
      const Node node = values_[id];
      if (node.kind != ScalarKind::kInt) continue;
      planes[id] = node.op == Op::kInteger
                       ? values_.boolean((node.integer >> p & 1) != 0)
                       : values_.select(node.arguments[0], planes.at(node.arguments[1]),
                                        planes.at(node.arguments[2]));
    }
    return planes.at(root);
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
    const ScalarCode bits(values_, {decoder.bits}, leaf);
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
        bits.lines(), finite_wire(), bits.text(decoder.bits), outside.members, code.lines(),
        code.text(decoder.level), outside.setup, outside.values);
  }

  int passes_ = 1;
};

}  // namespace

std::string emit_quantizer(const Program& program, const io::Digest& sources) {
  return QuantizerEmitter(program, sources).run();
}

}  // namespace hipress::compll
