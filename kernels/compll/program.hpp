#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/compll/source.hpp"

/// The intermediate form: what a program computes, without its statements.
///
/// Everything is a value: a node of one graph, in which equal nodes are the same node. Lambdas and
/// helper functions are gone (their bodies stand where they were called), and so are branches
/// (a value that depends on a condition is a kSelect). A value either is one per slice (a scalar)
/// or one per element: it depends, by some path, on kGradient, kCode or kDraw.
namespace hipress::compll {

enum class ScalarKind : std::uint8_t { kBool, kInt, kFloat };

enum class Op : std::uint8_t {
  // leaves
  kInteger,    ///< number in `integer`
  kReal,       ///< number in `real`
  kParameter,  ///< parameter `integer` of the algorithm
  kSize,       ///< elements of the slice
  kReduction,  ///< reduction `integer` of the encoder
  kField,      ///< field `integer` of the message
  kIndex,      ///< this element's index; stands only below kGradient and kCode
  kGradient,   ///< this element of the gradient
  kCode,       ///< this element of the message's codes
  kDraw,       ///< uniform in [0, 1), by element and call site `integer`
  kFirst,      ///< the first argument of a reduction's lambda
  kSecond,     ///< the second
  // arithmetic: int with int, float with float
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,  ///< int
  kNegate,
  kAnd,  ///< int, or bool
  kOr,   ///< int, or bool
  kXor,  ///< int
  kNot,  ///< int (every bit), or bool
  kShiftLeft,
  kShiftRight,
  kLess,
  kLessEqual,
  kEqual,
  kSelect,
  kFloor,
  kCeil,
  kAbs,
  kSqrt,
  kMin,
  kMax,
  // conversions
  kToFloat,
  kToInt,   ///< towards zero
  kToBits,  ///< int or float, clamped to 0 … 2^(second argument) - 1
};

using NodeId = std::int32_t;

struct Node {
  Op op;
  ScalarKind kind;
  NodeId arguments[3] = {-1, -1, -1};
  std::int64_t integer = 0;
  double real = 0;
  std::string
      name;  ///< what the program calls it; a hint for generated code, not part of the value
};

/// The values of a program; makes nodes, folds constants, keeps equal nodes one.
class Values {
 public:
  NodeId integer(std::int64_t value);
  NodeId real(double value);
  NodeId boolean(bool value);
  NodeId leaf(Op op, ScalarKind kind, std::int64_t number = 0);
  /// An operation of the kind that its arguments have, comparisons of kind bool.
  NodeId make(Op op, NodeId a, NodeId b = -1, NodeId c = -1);
  NodeId select(NodeId condition, NodeId yes, NodeId no);

  const Node& operator[](NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return nodes_.size(); }
  /// Calls a node by a name, if it has none.
  void name(NodeId id, const std::string& name);
  bool is_constant(NodeId id) const;

  /// Depends on the element.
  bool per_element(NodeId id) const { return facts_[static_cast<std::size_t>(id)].per_element; }
  /// Depends on a draw.
  bool draws(NodeId id) const { return facts_[static_cast<std::size_t>(id)].draws; }
  /// Depends on a kFirst or kSecond.
  bool open(NodeId id) const { return facts_[static_cast<std::size_t>(id)].open; }
  /// Depends on what only some slices share: size, reductions, fields.
  bool by_slice(NodeId id) const { return facts_[static_cast<std::size_t>(id)].by_slice; }
  /// Measuring passes that must be over before the value is known.
  int level(NodeId id) const { return facts_[static_cast<std::size_t>(id)].level; }
  /// Tells the values that reduction `number` reduces a value of level `level`.
  void set_reduction_level(std::int64_t number, int level);

  /// The range of an int value, as far as it follows from its parts.
  struct Range {
    std::int64_t least, most;
  };
  Range range(NodeId id) const { return facts_[static_cast<std::size_t>(id)].range; }
  /// Least and most of the parameters, by number; set before they are used.
  std::vector<Range> parameter_ranges;

 private:
  struct Facts {
    bool per_element = false, draws = false, open = false, by_slice = false;
    int level = 0;
    Range range = {0, 0};
  };
  NodeId keep(Node node);
  Range range_of(const Node& node) const;

  std::vector<Node> nodes_;
  std::vector<Facts> facts_;
  std::vector<std::vector<NodeId>> buckets_;
  std::vector<int> reduction_levels_;
};

/// A parameter of an algorithm: of its encoder, its decoder or both.
struct ProgramParameter {
  std::string name;
  ScalarKind kind = ScalarKind::kInt;
  std::optional<double> value;  ///< default; without it the user must give one
  double least = 0, most = 0;
};

enum class ReductionKind : std::uint8_t { kSum, kWholeSum, kMinimum, kMaximum };

/// One number made of all elements.
struct Reduction {
  ReductionKind kind;
  NodeId element;  ///< what is reduced, per element
  NodeId initial;  ///< minimum, maximum: the value for an empty slice; else added once
  std::string name;
};

/// How a field of a message is stored.
enum class FieldKind : std::uint8_t { kFloat, kInt, kByte, kWord };

struct Field {
  FieldKind kind;
  std::string name;
};

/// An encoder: fields and one code per element.
struct Encoder {
  std::vector<Reduction> reductions;
  std::vector<Field> fields;
  std::vector<NodeId> field_values;
  NodeId bits = -1;
  NodeId code = -1;
  bool error_feedback = false;
};

/// A decoder: what a code stands for.
struct Decoder {
  std::vector<Field> fields;
  NodeId bits = -1;   ///< of the codes, from fields and parameters
  NodeId level = -1;  ///< from kCode, fields and parameters
};

/// A whole algorithm.
struct Program {
  std::string name;  ///< "TernGrad" of TernGradEncode
  Values values;
  std::vector<ProgramParameter> parameters;
  std::optional<Encoder> encoder;
  std::optional<Decoder> decoder;
};

}  // namespace hipress::compll
