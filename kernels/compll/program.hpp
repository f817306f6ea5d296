#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kernels/compll/source.hpp"

/// The intermediate form: what a program computes, without its statements.
///
/// Everything is a value: a node of one graph, in which equal nodes are the same node. Lambdas and
/// helper functions are gone (their bodies stand where they were called), and so are branches
/// (a value that depends on a condition is a kSelect). A slice has one of a value (a scalar), or
/// one for each element of a domain, which is the slice itself or another array's indices.
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
  kLength,     ///< elements of a domain
  kIndex,      ///< this element's index
  kGradient,   ///< this element of the gradient
  kState,      ///< this element of state array `integer`, as the last step left it
  kCode,       ///< this element of the message's codes, of at most 8 bits
  kPart,       ///< this element of array `integer` of the message
  kDraw,       ///< uniform in [0, 1), by element and call site `integer`
  kKept,       ///< what the domain has kept of its source: value `integer`
  kIn,         ///< bool: this element's index is among the indices of mark `integer`
  kScattered,  ///< this element of scatter `integer`
  kRotated,    ///< this element of the gradient, its block rotated
  kInBlocks,   ///< of a block: reduction `integer` of the encoder's over its elements
  kOfBlock,    ///< of an element: value `integer` of Program::spread, of its block
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
  kAt,  ///< array `integer` at the index that is the argument; 0 outside of it
  // conversions
  kToFloat,
  kToInt,        ///< towards zero
  kToBits,       ///< int or float, clamped to 0 … 2^(second argument) - 1
  kBits,         ///< the bits of a float without its sign
  kFloatOfBits,  ///< the float that an int holds the bits of
};

using NodeId = std::int32_t;

struct Node {
  Op op;
  ScalarKind kind;
  NodeId arguments[3] = {-1, -1, -1};
  std::int64_t integer = 0;
  int domain = -1;  ///< of leaves that an element has
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
  /// A leaf that every element of a domain has.
  NodeId element(Op op, ScalarKind kind, std::int64_t number = 0, int domain = 0);
  /// Array `number`, whose elements are of a kind, at an index.
  NodeId at(std::int64_t number, ScalarKind kind, NodeId index);
  /// An operation of the kind that its arguments have, comparisons of kind bool.
  NodeId make(Op op, NodeId a, NodeId b = -1, NodeId c = -1);
  NodeId select(NodeId condition, NodeId yes, NodeId no);

  const Node& operator[](NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return nodes_.size(); }
  /// Calls a node by a name, if it has none.
  void name(NodeId id, const std::string& name);
  bool is_constant(NodeId id) const;

  /// The domain whose elements the value depends on; -1: it is a scalar.
  int domain(NodeId id) const { return facts_[static_cast<std::size_t>(id)].domain; }
  /// Depends on the element.
  bool per_element(NodeId id) const { return domain(id) >= 0; }
  /// Depends on a draw.
  bool draws(NodeId id) const { return facts_[static_cast<std::size_t>(id)].draws; }
  /// Depends on a kFirst or kSecond.
  bool open(NodeId id) const { return facts_[static_cast<std::size_t>(id)].open; }
  /// Depends on what only some slices share: size, reductions, fields.
  bool by_slice(NodeId id) const { return facts_[static_cast<std::size_t>(id)].by_slice; }
  /// Depends on what only encoding finds out: reductions, lengths, elements of arrays.
  bool measured(NodeId id) const { return facts_[static_cast<std::size_t>(id)].measured; }
  /// Depends on what a message says besides the lengths of its arrays.
  bool from_message(NodeId id) const { return facts_[static_cast<std::size_t>(id)].from_message; }
  /// Measuring passes that must be over before the value is known.
  int passes_before(NodeId id) const { return facts_[static_cast<std::size_t>(id)].passes; }
  /// Tells the values that reduction `number` reduces a value that is known after so many passes.
  void set_reduction_passes(std::int64_t number, int passes);

  /// The range of an int value, as far as it follows from its parts.
  struct Range {
    std::int64_t least, most;
  };
  Range range(NodeId id) const { return facts_[static_cast<std::size_t>(id)].range; }
  /// Least and most of the parameters, by number; set before they are used.
  std::vector<Range> parameter_ranges;
  /// Narrows the range of parameter `number`, and those of all that is made of it.
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

  std::deque<Node> nodes_;  ///< references to nodes outlive new ones
  std::vector<Facts> facts_;
  std::vector<std::vector<NodeId>> buckets_;
  std::vector<int> reduction_passes_;
};

/// A parameter of an algorithm: of its encoder, its decoder or both.
struct ProgramParameter {
  std::string name;
  ScalarKind kind = ScalarKind::kInt;
  std::optional<double> value;  ///< default; without it the user must give one
  double least = 0, most = 0;
  int multiple = 1;  ///< whole numbers: what divides every value
  bool own = false;  ///< other than 0, it makes the algorithm an optimizer of its own
};

/// Where arrays get their lengths and indices from.
enum class DomainKind : std::uint8_t {
  kSlice,      ///< the gradient's elements; domain 0
  kRange,      ///< 0 … `node` - 1
  kFilter,     ///< the source's elements for which `node` holds, in their order
  kLargest,    ///< the `count` elements of the source with the largest |node|, in their order
  kSorted,     ///< the source's elements by `node`
  kExtracted,  ///< in a decoder: as many as the encoder's domain `source` had
  kBlocks,     ///< one for every `node` elements of the slice, and one for the rest
};

struct Domain {
  DomainKind kind = DomainKind::kSlice;
  int source = -1;
  NodeId node = -1;
  NodeId count = -1;
  bool descending = false;
  std::vector<NodeId> kept;  ///< values of the source that its elements take along
};

/// An array that is read at other indices than its own.
struct Array {
  int domain;
  NodeId element;
};

/// Which elements of domain `target` are among some indices.
struct Mark {
  NodeId index;  ///< per element of domain `source`
  int source, target;
};

/// An array over domain `target` that is `value` at `index`, which have one domain, and 0
/// elsewhere.
struct Scatter {
  NodeId index, value;  ///< for the elements of domain `source`
  int source, target;
};

enum class ReductionKind : std::uint8_t { kSum, kWholeSum, kMinimum, kMaximum, kFold };

/// One number made of all elements of a domain.
struct Reduction {
  ReductionKind kind;
  NodeId element;    ///< what is reduced, per element
  NodeId initial;    ///< minimum, maximum: the value for an empty array; else comes first
  NodeId fold = -1;  ///< kFold: of kFirst and kSecond
  int domain = 0;
  std::string name;
};

/// How a field of a message is stored.
enum class FieldKind : std::uint8_t { kFloat, kInt, kByte, kWord };

struct Field {
  FieldKind kind;
  std::string name;
};

/// An array of a message.
struct Part {
  FieldKind kind;
  int domain;         ///< in a decoder: slice or kExtracted
  NodeId bits = -1;   ///< of kWord
  NodeId value = -1;  ///< per element; an encoder's
  std::string name;
};

/// What is kept per element from one step to the next, besides the residual.
struct StateArray {
  std::string name;
  NodeId next = -1;  ///< finite numbers
};

/// An encoder: a message's fields and arrays.
struct Encoder {
  std::vector<Reduction> reductions;
  std::vector<Reduction> block_reductions;  ///< over the elements of each block
  NodeId rotation = -1;                     ///< bool: whether blocks are rotated; -1: no
  std::vector<StateArray> states;
  std::vector<Field> fields;
  std::vector<NodeId> field_values;
  std::vector<Part> parts;
  NodeId bits = -1;  ///< of `code`
  NodeId code = -1;  ///< the one part, if it is a code of few bits for every element; else -1
  bool error_feedback = false;
};

/// A decoder: what an element is.
struct Decoder {
  std::vector<Field> fields;
  std::vector<Part> parts;
  NodeId bits = -1;      ///< of the codes, from fields and parameters; where the encoder has a code
  NodeId level = -1;     ///< per element of the slice
  NodeId rotation = -1;  ///< bool: whether the levels are those of rotated blocks; -1: no
};

/// A whole algorithm.
struct Program {
  std::string name;  ///< "TernGrad" of TernGradEncode
  Values values;
  std::vector<ProgramParameter> parameters;
  std::vector<Domain> domains = {{}};
  /// The domain that has a domain's length: sorting does not change it.
  int length_domain(int domain) const {
    while (domains[static_cast<std::size_t>(domain)].kind == DomainKind::kSorted) {
      domain = domains[static_cast<std::size_t>(domain)].source;
    }
    return domain;
  }
  std::vector<Array> arrays;
  std::vector<Mark> marks;
  std::vector<Scatter> scatters;
  /// Elements of a block, where the program works on blocks; else -1. Such a program is a quantiser
  /// whose message has numbers for every block.
  NodeId block = -1;
  std::vector<NodeId> spread;  ///< values of blocks that their elements see
  /// It is a quantiser: one code per element, measured and coded in passes over the slice.
  bool quantizer = true;
  std::optional<Encoder> encoder;
  std::optional<Decoder> decoder;
};

/// A checked program and what the compiler had to say about it.
struct Elaborated {
  Program program;
  Notes notes;
};

}  // namespace hipress::compll
