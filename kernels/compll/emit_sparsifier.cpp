// Generates a sparsifier: a struct as in kernels/frames/sparsifier.hpp.

#include <map>
#include <optional>

#include "kernels/compll/emit.hpp"
#include "kernels/compll/emitter.hpp"

namespace hipress::compll {

namespace {

/// Next state of an element; `cleared` is true if it becomes 0 where an entry is sent.
struct NextState {
  NodeId value;
  bool cleared;
};

struct Sparsifier {
  NodeId entry, count;
  std::vector<NextState> states;
  int score = -1;  ///< index of the state that holds the entry, or -1
};

/// Finds out if a program is a sparsifier: run() returns its parts, or nothing.
class SparsifierMatch {
 public:
  explicit SparsifierMatch(const Program& program) : program_(program), values_(program.values) {}

  std::optional<Sparsifier> run() const {
    if (!program_.encoder || !program_.decoder || program_.domains.size() < 2) return {};
    const Encoder& encoder = *program_.encoder;
    if (!encoder.fields.empty() || !encoder.reductions.empty() || encoder.parts.size() != 2) {
      return {};
    }
    const int chosen = encoder.parts[0].domain;
    const Domain& domain = program_.domains[static_cast<std::size_t>(chosen)];
    if (domain.kind != DomainKind::kLargest || domain.source != 0 ||
        values_.measured(domain.count) || !sends(encoder.parts, chosen) || !puts_back()) {
      return {};
    }
    Sparsifier made{.entry = domain.node, .count = domain.count, .states = {}};
    if (!on_lanes(made.entry) || !values_.per_element(made.entry)) return {};
    for (std::size_t i = 0; i < encoder.states.size(); ++i) {
      const NextState next = next_state(encoder.states[i].next, encoder.parts[0].value);
      if (!on_lanes(next.value)) return {};
      if (next.value == made.entry) made.score = static_cast<int>(i);
      made.states.push_back(next);
    }
    // After updating the states, the frame reads entries again, from one of them or the residual.
    if (encoder.error_feedback) {
      if (values_[made.entry].op != Op::kGradient) return {};
      made.score = -1;
    } else if (!encoder.states.empty() && made.score < 0) {
      return {};
    }
    return made;
  }

 private:
  /// Skips a clamp to 32 bits, which does not change an index: indices are below 2^32.
  const Node& plain(NodeId id) const {
    const Node& node = values_[id];
    if (node.op != Op::kToBits) return node;
    const Node& bits = values_[node.arguments[1]];
    return bits.op == Op::kInteger && bits.integer == 32 ? values_[node.arguments[0]] : node;
  }

  /// Value of the source's element that `node` stands for if it is a kKept of `domain`; else -1.
  NodeId kept(const Node& node, int domain) const {
    if (node.op != Op::kKept || node.domain != domain) return -1;
    return program_.domains[static_cast<std::size_t>(domain)]
        .kept[static_cast<std::size_t>(node.integer)];
  }

  /// True if the message consists of the entries' indices and values.
  bool sends(const std::vector<Part>& parts, int domain) const {
    const Part& indices = parts[0];
    const Part& entries = parts[1];
    if (indices.kind != FieldKind::kWord || entries.kind != FieldKind::kFloat ||
        entries.domain != domain) {
      return false;
    }
    const Node& bits = values_[indices.bits];
    const NodeId index = kept(plain(indices.value), domain);
    return bits.op == Op::kInteger && bits.integer == 32 && index >= 0 &&
           values_[index].op == Op::kIndex &&
           kept(values_[entries.value], domain) ==
               program_.domains[static_cast<std::size_t>(domain)].node;
  }

  /// True if the decoder scatters the entries to their indices.
  bool puts_back() const {
    const Node& level = values_[program_.decoder->level];
    if (level.op != Op::kScattered) return false;
    const Scatter& made = program_.scatters[static_cast<std::size_t>(level.integer)];
    const Node& index = plain(made.index);
    const Node& value = values_[made.value];
    return made.target == 0 && index.op == Op::kPart && index.integer == 0 &&
           value.op == Op::kPart && value.integer == 1;
  }

  NextState next_state(NodeId id, NodeId indices) const {
    const Node& node = values_[id];
    if (node.op != Op::kSelect) return {id, false};
    const Node& test = values_[node.arguments[0]];
    const Node& yes = values_[node.arguments[1]];
    const bool cleared =
        test.op == Op::kIn &&
        &plain(program_.marks[static_cast<std::size_t>(test.integer)].index) == &plain(indices) &&
        yes.op == Op::kReal && yes.real == 0;
    return cleared ? NextState{node.arguments[2], true} : NextState{id, false};
  }

  /// True if a value is float arithmetic on gradient, states, and scalars known before the encode.
  bool on_lanes(NodeId root) const {
    const auto scalar = [&](NodeId id) { return !values_.per_element(id); };
    for (const NodeId id : needed_for(values_, {root}, scalar)) {
      const Node& node = values_[id];
      if (scalar(id)) {
        if (values_.measured(id)) return false;
        continue;
      }
      const bool leaf = node.arguments[0] < 0;
      if (leaf && node.op != Op::kGradient && node.op != Op::kState) return false;
      if (node.kind == ScalarKind::kInt || node.op == Op::kAt) return false;
    }
    return true;
  }

  const Program& program_;
  const Values& values_;
};

class SparsifierEmitter : Emitter {
 public:
  SparsifierEmitter(const Program& program, const io::Digest& sources)
      : Emitter(program, sources), sparsifier_(*SparsifierMatch(program).run()) {}

  std::string run() {
    return file(properties() + parameters() + constructor() + count() + selection(),
                "#include \"kernels/export/export.hpp\"\n#include \"kernels/frames/scalars.hpp\"\n"
                "#include \"kernels/frames/sparsifier.hpp\"\n",
                "HIPRESS_EXPORT_SPARSIFIER");
  }

 private:
  std::string properties() const {
    std::string clears;
    for (const NextState& state : sparsifier_.states) {
      clears += fmt::format("{}{}", clears.empty() ? "" : ", ", state.cleared);
    }
    return fmt::format(
        "  static constexpr std::uint16_t kTag = {};\n"
        "  static constexpr int kStates = {};\n"
        "  static constexpr bool kErrorFeedback = {};\n"
        "  static constexpr int kScore = {};\n"
        "  static constexpr bool kClears[] = {{{}}};\n\n",
        tag(), sparsifier_.states.size(), encoder_.error_feedback, sparsifier_.score,
        clears.empty() ? "false" : clears);
  }

  std::string size_leaf(NodeId id) const {
    return values_[id].op == Op::kSize ? std::string("elements") : scalar_leaf(id);
  }

  std::string count() const {
    const ScalarCode code(values_, {sparsifier_.count}, [&](NodeId id) { return size_leaf(id); });
    return fmt::format(
        "  HIPRESS_LANES std::int64_t count([[maybe_unused]] std::int64_t elements) const {{\n{0}"
        "    return {1} < 0 ? 0 : {1} < elements ? {1} : elements;\n  }}\n\n",
        code.lines(), code.text(sparsifier_.count));
  }

  bool is(NodeId id, double number) const {
    return values_[id].op == Op::kReal && values_[id].real == number;
  }

  /// Value if all states are 0, simplified for a finite gradient. The sign of a zero may change.
  NodeId without_states(NodeId root) {
    constexpr double kLargest = 3.4028234663852886e38;
    std::map<NodeId, NodeId> becomes;
    for (const NodeId id : needed_for(values_, {root}, [](NodeId) { return false; })) {
      const Node node = values_[id];
      const auto part = [&](int i) {
        return node.arguments[i] < 0 ? NodeId{-1} : becomes.at(node.arguments[i]);
      };
      const NodeId a = part(0), b = part(1), c = part(2);
      const bool real = node.kind == ScalarKind::kFloat;
      NodeId& made = becomes[id];
      if (node.op == Op::kState) {
        made = values_.real(0);
      } else if (a < 0) {
        made = id;
      } else if (real && node.op == Op::kMultiply && (is(a, 0) || is(b, 0))) {
        made = values_.real(0);
      } else if (real && node.op == Op::kAdd && (is(a, 0) || is(b, 0))) {
        made = is(a, 0) ? b : a;
      } else if (values_[a].op == Op::kGradient && ((node.op == Op::kMin && is(b, kLargest)) ||
                                                    (node.op == Op::kMax && is(b, -kLargest)))) {
        made = a;
      } else {
        made = values_.make(node.op, a, b, c);
      }
    }
    return becomes.at(root);
  }

  /// Code of Selection::first(): an element's entry if all states are 0.
  std::string first() {
    const NodeId entry = without_states(sparsifier_.entry);
    const LaneCode code(values_, {entry}, [&](NodeId id) { return element_leaf(id); });
    const Captured outside = captured(
        code, [&](NodeId id) { return size_leaf(id); }, "    ");
    return fmt::format(
        "    template <class F>\n"
        "    HIPRESS_LANES F first([[maybe_unused]] F value) const {{\n{}      return {};\n    "
        "}}\n",
        code.lines(), code.text(entry));
  }

  std::string selection() {
    std::vector<NodeId> roots = {sparsifier_.entry};
    for (const NextState& state : sparsifier_.states) roots.push_back(state.value);
    const std::string without = first();
    const LaneCode code(values_, roots, [&](NodeId id) { return element_leaf(id); });
    const Captured outside = captured(
        code, [&](NodeId id) { return size_leaf(id); }, "    ");
    std::string before, after;
    for (std::size_t i = 0; i < sparsifier_.states.size(); ++i) {
      before += fmt::format("      [[maybe_unused]] const F state_{0} = state[{0}];\n", i);
      after += fmt::format("      state[{}] = {};\n", i, code.text(sparsifier_.states[i].value));
    }
    return fmt::format(
        "  struct Selection {{\n{0}"
        "    template <class F>\n"
        "    HIPRESS_LANES F of([[maybe_unused]] F value, [[maybe_unused]] F* state) const {{\n"
        "{1}{2}{3}      return {4};\n    }}\n{7}  }};\n"
        "  HIPRESS_LANES Selection selection([[maybe_unused]] std::int64_t elements) const {{\n"
        "{5}    return {{{6}}};\n  }}\n",
        outside.members, before, code.lines(), after, code.text(sparsifier_.entry), outside.setup,
        outside.values, without);
  }

  const Sparsifier sparsifier_;
};

}  // namespace

bool is_sparsifier(const Program& program) { return SparsifierMatch(program).run().has_value(); }

std::string emit_sparsifier(const Program& program, const io::Digest& sources) {
  return SparsifierEmitter(program, sources).run();
}

}  // namespace hipress::compll
