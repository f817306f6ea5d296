// Generates a block quantiser: a struct as in kernels/frames/block_quantizer.hpp.

#include <stdexcept>

#include "kernels/compll/emit.hpp"
#include "kernels/compll/emitter.hpp"

namespace hipress::compll {

namespace {

class BlockEmitter : Emitter {
 public:
  BlockEmitter(const Program& program, const io::Digest& sources) : Emitter(program, sources) {}

  std::string run() {
    return file(properties() + parameters() + construction() + measure() + encoded_block() +
                    coder() + decoder(),
                "#include \"kernels/export/export.hpp\"\n"
                "#include \"kernels/export/block_frame.hpp\"\n"
                "#include \"kernels/frames/scalars.hpp\"\n",
                "HIPRESS_EXPORT_BLOCK_QUANTIZER");
  }

 private:
  std::string properties() const {
    const Values::Range bits = values_.range(encoder_.bits);
    return fmt::format(
        "  static constexpr std::uint16_t kTag = {};\n"
        "  static constexpr int kMinPlanes = {};\n"
        "  static constexpr int kMaxPlanes = {};\n"
        "  static constexpr int kSent = {};\n"
        "  static constexpr bool kRotates = {};\n"
        "  static constexpr bool kErrorFeedback = {};\n\n",
        tag(), bits.least, bits.most, encoder_.parts.size() - 1, encoder_.rotation >= 0,
        encoder_.error_feedback);
  }

  std::string construction() const {
    std::vector<NodeId> roots = {program_.block, encoder_.bits};
    if (encoder_.rotation >= 0) roots.push_back(encoder_.rotation);
    const ScalarCode code(values_, roots, [&](NodeId id) { return scalar_leaf(id); });
    return fmt::format(
        "{0}"
        "  HIPRESS_LANES int planes() const {{\n{1}    return static_cast<int>({2});\n  }}\n"
        "  HIPRESS_LANES int block() const {{\n{1}    return static_cast<int>({3});\n  }}\n"
        "  HIPRESS_LANES bool rotates() const {{\n{1}    return {4};\n  }}\n\n",
        constructor(), unused(code.lines()), code.text(encoder_.bits), code.text(program_.block),
        encoder_.rotation >= 0 ? code.text(encoder_.rotation) : "false");
  }

  /// Marks constants as [[maybe_unused]], since a function uses only some of them.
  static std::string unused(std::string lines) {
    const std::string from = "    const ";
    for (std::size_t at = lines.find(from); at != std::string::npos;
         at = lines.find(from, at + from.size() + 20)) {
      lines.insert(at + 4, "[[maybe_unused]] ");
    }
    return lines;
  }

  std::string measure() const {
    static constexpr const char* kNames[] = {"Sum", "WholeSum", "Minimum", "Maximum"};
    std::vector<NodeId> elements;
    std::string operations;
    for (const Reduction& reduction : encoder_.block_reductions) {
      operations += fmt::format(", {}", kNames[static_cast<int>(reduction.kind)]);
      elements.push_back(reduction.element);
    }
    const LaneCode code(values_, elements, [&](NodeId id) { return leaf(id); });
    const Captured outside = captured_outside(code);
    std::string result = "{}";
    for (std::size_t i = elements.size(); i-- > 0;) {
      result = fmt::format("{{{}, {}}}", code.text(elements[i]), result);
    }
    return fmt::format(
        "  struct Measure {{\n{0}"
        "    template <class F>\n    using Partial = Partials<F{1}>;\n"
        "    template <class F>\n"
        "    HIPRESS_LANES Partial<F> of([[maybe_unused]] F value,\n"
        "                                [[maybe_unused]] std::int64_t element) const {{\n"
        "{2}      return {3};\n    }}\n  }};\n"
        "  HIPRESS_LANES Measure measure([[maybe_unused]] const DrawStream& draws) const {{\n"
        "{4}    return {{{5}}};\n  }}\n\n",
        outside.members, operations, code.lines(), result, outside.setup, outside.values);
  }

  /// Indices in Program::spread of the decoder's values if `decoder`, otherwise of the encoder's.
  std::vector<std::size_t> spread_in(bool decoder) const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < program_.spread.size(); ++i) {
      const auto domain = static_cast<std::size_t>(values_.domain(program_.spread[i]));
      const bool extracted = program_.domains[domain].kind == DomainKind::kExtracted;
      if (extracted == decoder) numbers.push_back(i);
    }
    return numbers;
  }

  /// Code of `struct NAME`, a block's values, and of `NAMECode`, whose `of(ARGUMENT)` makes a NAME.
  std::string block_struct(const std::string& name, const std::string& argument,
                           const std::vector<NodeId>& sent,
                           const std::vector<std::size_t>& spread) const {
    std::vector<NodeId> roots = sent;
    std::string members, fill;
    for (const std::size_t number : spread) {
      roots.push_back(program_.spread[number]);
      members += fmt::format("    float spread_{} = 0;\n", number);
    }
    const LaneCode code(values_, roots, [&](NodeId id) { return leaf(id); });
    const Captured outside = captured_outside(code);
    if (!sent.empty()) members += fmt::format("    float sent[{}] = {{}};\n", sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      fill += fmt::format("      made.sent[{}] = {};\n", i, code.text(sent[i]));
    }
    for (const std::size_t number : spread) {
      fill +=
          fmt::format("      made.spread_{} = {};\n", number, code.text(program_.spread[number]));
    }
    return fmt::format(
        "  struct {0} {{\n{1}  }};\n"
        "  struct {0}Code {{\n{2}"
        "    HIPRESS_LANES {0} of([[maybe_unused]] {3}) const {{\n"
        "      using F [[maybe_unused]] = float;\n{4}      {0} made;\n{5}      return made;\n    "
        "}}\n  }};\n"
        "  HIPRESS_LANES {0}Code {6}_code() const {{\n{7}    return {{{8}}};\n  }}\n\n",
        name, members, outside.members, argument, code.lines(), fill,
        name == "EncodedBlock" ? "encoded_block" : "decoded_block", outside.setup, outside.values);
  }

  std::string encoded_block() const {
    std::vector<NodeId> sent;
    for (std::size_t i = 0; i + 1 < encoder_.parts.size(); ++i) {
      sent.push_back(encoder_.parts[i].value);
    }
    return block_struct("EncodedBlock", "const Measure::Partial<float>& found", sent,
                        spread_in(false));
  }

  std::string coder() const {
    const LaneCode code(values_, {encoder_.code}, [&](NodeId id) { return leaf(id); });
    const Captured outside = captured_outside(code);
    return fmt::format(
        "  struct Coder {{\n{0}"
        "    template <class F>\n"
        "    HIPRESS_LANES UnsignedLanes<F> of([[maybe_unused]] const EncodedBlock& block,\n"
        "                                      [[maybe_unused]] F value,\n"
        "                                      [[maybe_unused]] std::int64_t element) const {{\n"
        "{1}      return {2};\n    }}\n  }};\n"
        "  HIPRESS_LANES Coder coder([[maybe_unused]] const DrawStream& draws) const {{\n"
        "{3}    return {{{4}}};\n  }}\n\n",
        outside.members, code.lines(), code.text(encoder_.code), outside.setup, outside.values);
  }

  std::string decoder() const {
    if (!program_.decoder) {
      return "  /// There is no decoder: every message is refused.\n"
             "  static constexpr bool kDecodes = false;\n"
             "  struct DecodedBlock {};\n"
             "  struct DecodedBlockCode {\n"
             "    HIPRESS_LANES DecodedBlock of(const float*) const { return {}; }\n  };\n"
             "  HIPRESS_LANES DecodedBlockCode decoded_block_code() const { return {}; }\n"
             "  struct Levels {\n    template <class F>\n"
             "    HIPRESS_LANES F of(const DecodedBlock&, UnsignedLanes<F>) const { return F{}; }\n"
             "  };\n  HIPRESS_LANES Levels levels() const { return {}; }\n";
    }
    const NodeId level = program_.decoder->level;
    const LaneCode code(values_, {level}, [&](NodeId id) { return leaf(id); });
    const Captured outside = captured_outside(code);
    return "  static constexpr bool kDecodes = true;\n" +
           block_struct("DecodedBlock", "const float* sent", {}, spread_in(true)) +
           fmt::format(
               "  struct Levels {{\n{0}"
               "    template <class F>\n"
               "    HIPRESS_LANES F of([[maybe_unused]] const DecodedBlock& block,\n"
               "                       [[maybe_unused]] UnsignedLanes<F> code) const {{\n"
               "{1}      return {2};\n    }}\n  }};\n"
               "  HIPRESS_LANES Levels levels() const {{\n{3}    return {{{4}}};\n  }}\n",
               outside.members, code.lines(), code.text(level), outside.setup, outside.values);
  }

  Captured captured_outside(const LaneCode& code) const {
    return captured(
        code, [&](NodeId id) { return scalar_leaf(id); }, "    ");
  }

  std::string leaf(NodeId id) const {
    const Node& node = values_[id];
    switch (node.op) {
      case Op::kInBlocks:
        return fmt::format("(number<{}>(found) + 0.0f)", node.integer);  // -0 becomes 0
      case Op::kOfBlock:
        return fmt::format("broadcast<F>(block.spread_{})", node.integer);
      case Op::kPart:
        return fmt::format("sent[{}]", node.integer);
      case Op::kCode:
        return "code";
      default:
        return element_leaf(id);
    }
  }
};

}  // namespace

std::string emit_blocks(const Program& program, const io::Digest& sources) {
  return BlockEmitter(program, sources).run();
}

}  // namespace hipress::compll
