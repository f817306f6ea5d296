#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kernels/compll/source.hpp"

/// Intermediate representation: the values that a program computes, without its statements.
///
/// Everything is a value: a node of one graph, in which equal nodes are shared. Lambdas and helper
/// functions are inlined, and branches become kSelect. A value is a scalar of the slice, or has one
/// number per element of a domain. A domain is the slice itself, or another array's indices.
namespace hipress::compll {

enum class ScalarKind : std::uint8_t { kBool, kInt, kFloat };

enum class Op : std::uint8_t {
  // leaves: values without operands
  kInteger,    ///< number in `integer`
  kReal,       ///< number in `real`
  kParameter,  ///< parameter `integer` of the algorithm
  kSize,       ///< number of elements of the slice
  kReduction,  ///< reduction `integer` of the encoder
  kField,      ///< field `integer` of the message
  kLength,     ///< number of elements of domain `integer`
  kIndex,      ///< this element's index
  kGradient,   ///< this element of the gradient
  kState,      ///< this element of state array `integer`, as the last step left it
  kCode,       ///< this element of the message's codes, of at most 8 bits
  kPart,       ///< this element of array `integer` of the message
  kDraw,       ///< random number in [0, 1), one per element and call site `integer`
  kKept,       ///< Domain::kept[`integer`], for the source's element that became this one
  kIn,         ///< bool: this element's index is among the indices of mark `integer`
  kScattered,  ///< this element of the array that scatter `integer` makes
  kRotated,    ///< this element of the gradient after the rotation of its block
  kInBlocks,   ///< per block: result of Encoder::block_reductions[`integer`]
  kOfBlock,    ///< per element: Program::spread[`integer`] of the element's block
  kFirst,      ///< first argument of a reduction's lambda
  kSecond,     ///< second argument
  // arithmetic: all operands are ints, or all are floats
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
  kAt,  ///< array `integer` at the argument's index; 0 outside
  // conversions
  kToFloat,
  kToInt,        ///< towards zero
  kToBits,       ///< int or float, clamped to 0 … 2^(second argument) - 1
  kBits,         ///< bits of a float without its sign
  kFloatOfBits,  ///< float with the bits of an int
};

using NodeId = std::int32_t;

struct Node {
  Op op;
  ScalarKind kind;
  NodeId arguments[3] = {-1, -1, -1};
  std::int64_t integer = 0;
  int domain = -1;  ///< leaf with one value per element: its domain; otherwise -1
  double real = 0;
  std::string name;  ///< name in the program: a hint for generated code, not part of the value
};

/// Values of a program: makes nodes, folds constants, shares equal nodes.
class Values {
 public:
  NodeId integer(std::int64_t value);
  NodeId real(double value);
  NodeId boolean(bool value);
  NodeId leaf(Op op, ScalarKind kind, std::int64_t number = 0);
  /// Makes a leaf with one value per element of a domain.
  NodeId element(Op op, ScalarKind kind, std::int64_t number = 0, int domain = 0);
  /// Makes the element of array `number`, of kind `kind`, at an index.
  NodeId at(std::int64_t number, ScalarKind kind, NodeId index);
  /// Makes an operation. Comparisons give bool, conversions their type, others the arguments' kind.
  NodeId make(Op op, NodeId a, NodeId b = -1, NodeId c = -1);
  NodeId select(NodeId condition, NodeId yes, NodeId no);

  const Node& operator[](NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return nodes_.size(); }
  /// Names a node, unless it has a name already.
  void name(NodeId id, const std::string& name);
  bool is_constant(NodeId id) const;

  /// Domain whose elements the value depends on; -1 for a scalar.
  int domain(NodeId id) const { return facts_[static_cast<std::size_t>(id)].domain; }
  /// True if the value depends on the element.
  bool per_element(NodeId id) const { return domain(id) >= 0; }
  /// True if the value depends on a draw.
  bool draws(NodeId id) const { return facts_[static_cast<std::size_t>(id)].draws; }
  /// True if the value depends on a kFirst or kSecond.
  bool open(NodeId id) const { return facts_[static_cast<std::size_t>(id)].open; }
  /// True if the value depends on a scalar of the slice: kSize, kReduction, kField, kLength or kAt.
  bool by_slice(NodeId id) const { return facts_[static_cast<std::size_t>(id)].by_slice; }
  /// True if the value is known only during an encode: it depends on a kReduction, kLength or kAt.
  bool measured(NodeId id) const { return facts_[static_cast<std::size_t>(id)].measured; }
  /// True if the value depends on a message's content other than the lengths of its arrays.
  bool from_message(NodeId id) const { return facts_[static_cast<std::size_t>(id)].from_message; }
  /// Number of measuring passes before the value is known.
  int passes_before(NodeId id) const { return facts_[static_cast<std::size_t>(id)].passes; }
  /// Records that reduction `number` reduces a value that is known after `passes` passes.
  void set_reduction_passes(std::int64_t number, int passes);

  /// Range of an int value, derived from its arguments.
  struct Range {
    std::int64_t least, most;
  };
  Range range(NodeId id) const { return facts_[static_cast<std::size_t>(id)].range; }
  /// Ranges of the parameters, by number. A parameter's must be there before kParameter is made.
  std::vector<Range> parameter_ranges;
  /// Narrows the range of parameter `number`, and of all values derived from it.
  void hold_parameter(std::int64_t number, Range range);

 private:
  struct Facts {
    int domain = -1;
    bool draws = false, open = false, by_slice = false, measured = false;
    bool from_message = false;
    int passes = 0;
    Range range = {0, 0};
  };
  NodeId keep(Node node);
  Range range_of(const Node& node) const;

  std::deque<Node> nodes_;  ///< a deque: references stay valid when nodes are added
  std::vector<Facts> facts_;
  std::vector<std::vector<NodeId>> buckets_;
  std::vector<int> reduction_passes_;
};

/// A parameter of an algorithm's encoder, decoder or both.
struct ProgramParameter {
  std::string name;
  ScalarKind kind = ScalarKind::kInt;
  std::optional<double> value;  ///< default; if empty, the user must give a value
  double least = 0, most = 0;
  int multiple = 1;  ///< for whole numbers: every value is a multiple of it
  bool own = false;  ///< a value other than 0 makes the algorithm an optimizer
};

/// Origin of an array's length and indices.
enum class DomainKind : std::uint8_t {
  kSlice,      ///< elements of the gradient; domain 0
  kRange,      ///< the indices 0 … `node` - 1
  kFilter,     ///< the source's elements for which `node` holds, in their order
  kLargest,    ///< the `count` elements of the source with the largest |node|, in their order
  kSorted,     ///< the source's elements, sorted by `node`
  kExtracted,  ///< decoder: as many elements as the encoder's domain `source` has
  kBlocks,     ///< blocks of `node` elements of the slice; the last block may be shorter
};

struct Domain {
  DomainKind kind = DomainKind::kSlice;
  int source = -1;
  NodeId node = -1;
  NodeId count = -1;
  bool descending = false;
  std::vector<NodeId> kept;  ///< values of the source's elements that are used in this domain
};

/// An array that is read at indices other than the current one.
struct Array {
  int domain;
  NodeId element;
};

/// Mark of the elements of domain `target` whose indices are among the values of `index`.
struct Mark {
  NodeId index;  ///< per element of domain `source`
  int source, target;
};

/// An array over domain `target`: `value` at `index` for every element of `source`, 0 elsewhere.
struct Scatter {
  NodeId index, value;  ///< per element of domain `source`
  int source, target;
};

enum class ReductionKind : std::uint8_t { kSum, kWholeSum, kMinimum, kMaximum, kFold };

/// One number computed from all elements of a domain.
struct Reduction {
  ReductionKind kind;
  NodeId element;    ///< value to reduce, per element
  NodeId initial;    ///< minimum, maximum: result for an empty array; otherwise the first operand
  NodeId fold = -1;  ///< kFold: the lambda's result, a value of kFirst and kSecond
  int domain = 0;
  std::string name;
};

/// Storage of a field of a message: float, int, uint8 or uint<bits>.
enum class FieldKind : std::uint8_t { kFloat, kInt, kByte, kWord };

struct Field {
  FieldKind kind;
  std::string name;
};

/// An array of a message.
struct Part {
  FieldKind kind;
  int domain;         ///< domain of its elements; in a decoder, the slice or a kExtracted
  NodeId bits = -1;   ///< kByte, kWord: bits per element
  NodeId value = -1;  ///< encoder: value per element
  std::string name;
};

/// State kept per element between steps, besides the residual.
struct StateArray {
  std::string name;
  NodeId next = -1;  ///< next state; finite numbers
};

/// Encoder: the fields and arrays of a message, and the states.
struct Encoder {
  std::vector<Reduction> reductions;
  std::vector<Reduction> block_reductions;  ///< over the elements of each block
  NodeId rotation = -1;                     ///< bool: blocks are rotated; -1 if never
  std::vector<StateArray> states;
  std::vector<Field> fields;
  std::vector<NodeId> field_values;
  std::vector<Part> parts;
  NodeId bits = -1;  ///< bits of `code`
  NodeId code = -1;  ///< quantiser: an element's code of at most 8 bits; otherwise -1
  bool error_feedback = false;
};

/// Decoder: the fields and arrays that it reads, and the decoded values.
struct Decoder {
  std::vector<Field> fields;
  std::vector<Part> parts;
  NodeId bits = -1;   ///< bits of the codes, from fields and parameters, if the encoder has a code
  NodeId level = -1;  ///< decoded value, per element of the slice
  NodeId rotation = -1;  ///< bool: the levels belong to rotated blocks; -1 if never
};

/// A whole algorithm.
struct Program {
  std::string name;  ///< "TernGrad" for TernGradEncode
  Values values;
  std::vector<ProgramParameter> parameters;
  std::vector<Domain> domains = {{}};
  /// Domain that has the length of `domain`: for a sorted array, that of the array before sorting.
  int length_domain(int domain) const {
    while (domains[static_cast<std::size_t>(domain)].kind == DomainKind::kSorted) {
      domain = domains[static_cast<std::size_t>(domain)].source;
    }
    return domain;
  }
  std::vector<Array> arrays;
  std::vector<Mark> marks;
  std::vector<Scatter> scatters;
  /// Elements of a block if the program works on blocks, else -1. Such a program is a quantiser
  /// whose message has numbers for every block.
  NodeId block = -1;
  std::vector<NodeId> spread;  ///< values of a block that its elements read
  /// True for a quantiser: one code per element, measured and coded in passes over the slice.
  bool quantizer = true;
  std::optional<Encoder> encoder;
  std::optional<Decoder> decoder;
};

struct Elaborated {
  Program program;
  Notes notes;
};

}  // namespace hipress::compll
