#pragma once

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/compll/program.hpp"

/// Generates C++ code that computes values: scalars of a slice, per-element values on lanes
/// (kernels/codec/lanes.hpp), and single operations.
namespace hipress::compll {

/// C++ literal of exactly this number: of type float if `single`, otherwise double.
std::string literal(double value, bool single);

/// C++ type of a scalar of a slice.
const char* cpp_type(ScalarKind kind);

/// C++ type of a per-element value on lanes F.
const char* lane_type(ScalarKind kind);

/// Precision of arithmetic on numbers of kind float.
enum class Precision : std::uint8_t { kDouble, kSingle };

/// Code of an operation on numbers; `arguments` holds the code of its operands.
std::string number_operation(const Node& node, Precision precision,
                             const std::array<std::string, 3>& arguments);

/// Makes unique names for values: "v_gap" for the first that the program names gap, "v2_gap" for
/// the second, and "v12" for value 12 if it has no name. No other name in generated code, the
/// frames or C++ has these forms.
class Names {
 public:
  std::string make(const std::string& wish, NodeId id);

 private:
  std::map<std::string, int> used_;  ///< number of values by name
};

/// `roots` and all values that they depend on, arguments before their users. Does not follow the
/// arguments of values for which `stop` is true.
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
/// Generates code that computes scalars of a slice: lines() are statements, text() is a value.
class ScalarCode {
 public:
  /// `leaves` returns the code of a leaf.
  template <class Leaves>
  ScalarCode(const Values& values, const std::vector<NodeId>& roots, const Leaves& leaves) {
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
    const auto argument = [&](int i) {
      return node.arguments[i] < 0 ? std::string() : texts_.at(node.arguments[i]);
    };
    return number_operation(node, Precision::kDouble, {argument(0), argument(1), argument(2)});
  }

  Names names_;
  std::map<NodeId, std::string> texts_;
  std::string lines_;
};
/// A per-slice value that element code uses; it is a member of the object that holds the code.
struct Capture {
  NodeId id;
  std::string name;
};
/// Generates code that computes per-element values, on lanes F.
class LaneCode {
 public:
  /// `leaves` returns the code of a leaf that depends on the element.
  template <class Leaves>
  LaneCode(const Values& values, const std::vector<NodeId>& roots, const Leaves& leaves)
      : values_(values) {
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
      work_ += node.op == Op::kDraw ? kWorkOfDraw : 1;
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
  /// Estimate of the C++ compiler's work: the number of operations; a draw counts as several.
  int work() const { return work_; }

  /// Code of a value as lanes.
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
  static constexpr int kWorkOfDraw = 15;

  /// Code of an int or bool that is the same for all lanes, as a scalar.
  std::string number(NodeId id) const {
    const Node& node = values_[id];
    return node.op == Op::kInteger ? fmt::format("{}", node.integer) : captured_.at(id);
  }

  std::string operation(const Node& node) const;

  const Values& values_;
  Names names_;
  std::map<NodeId, std::string> texts_;
  std::map<NodeId, std::string> captured_;
  std::vector<Capture> captures_;
  std::set<std::int64_t> sites_;
  std::string lines_;
  int work_ = 0;
};
}  // namespace hipress::compll
