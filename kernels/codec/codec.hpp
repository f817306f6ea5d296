#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/codec/item.hpp"
#include "kernels/codec/stages.hpp"

/// Gradient compression. An example that encodes a gradient and decodes it, on the CPU:
///
///   std::vector<float> gradient(1000), decoded(1000);
///   const std::unique_ptr<Codec> codec = make_codec("tbq(tau=0.25)");
///   const std::int64_t bytes = codec->encoded_bytes(1000);
///   std::vector<std::byte> message(bytes);  // `new` aligns it to 16 bytes
///   const EncodeItem encode = {
///       .values = gradient.data(), .elements = 1000, .message = message.data()};
///   codec->encode({&encode, 1});
///
///   const std::byte* const from = message.data();
///   const DecodeItem decode = {.messages = {&from, 1},
///                              .message_bytes = {&bytes, 1},
///                              .elements = 1000,
///                              .values = decoded.data()};
///   codec->decode({&decode, 1});
///
/// This encode keeps no residual; StateStore (state_store.hpp) supplies EncodeItem::state.
namespace hipress::kernels {

/// Device on which kernels run. A CUDA stream is passed as void* so that this header needs no
/// toolkit.
enum class Device : std::uint8_t { kCpu, kCuda };

/// A slice, and the messages to decode: one that overwrites the slice, or several to add to it.
struct DecodeItem {
  std::span<const std::byte* const> messages;   ///< 16-byte aligned; exactly one when overwriting
  std::span<const std::int64_t> message_bytes;  ///< lengths of the messages, checked
  std::int64_t elements = 0;
  void* values = nullptr;  ///< `elements` numbers of `type`
  ValueType type = ValueType::kFloat32;
  DecodeMode mode = DecodeMode::kOverwrite;
  float own_divisor = 1;
  float sum_divisor = 1;
};

/// Properties of a codec that do not depend on its parameters' values.
struct CodecTraits {
  /// Casts to fp16 or bf16. Topologies divide before they add, so that sums stay in range.
  bool half_precision = false;
  /// With half_precision, the element type of messages, which can be added as arrays.
  ValueType message_values = ValueType::kFloat32;
  int state_arrays = 0;         ///< arrays in a State, with error feedback on
  bool error_feedback = false;  ///< on by default
  bool sparse = false;          ///< messages are entries: indices and values
  bool varies = false;          ///< message length depends on the data
  /// Messages are factors: the mean of all nodes' messages is the message of the mean. Nodes that
  /// pass messages on add them without decoding; encode() and decode() are never called.
  bool additive = false;
  int stages = 1;  ///< messages per gradient; each may depend on the means of earlier ones
  /// Applies optimizer logic, such as momentum, to a node's own gradient. The decoded result is
  /// then not a mean of gradients, and only topologies that encode every node's gradient exactly
  /// once can use it.
  bool own_optimizer = false;
};

/// A compression algorithm with its parameters bound, for one device. Immutable and thread-safe:
/// all state is in the items. Work is given in batches, so that one launch can serve many small
/// tensors.
///
/// A codec has one or more stages, usually one. encode_stage() makes the message of a stage;
/// decode_stages() makes the gradient from the messages of all stages. A codec whose messages are
/// not additive has one stage, encode() and decode() of the whole gradient. Where a gradient
/// travels in slices, nodes call encode() and decode() for each slice.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual const CodecTraits& traits() const = 0;
  /// Size of a slice's message, in bytes; an upper bound if it varies with the data. A multiple of
  /// 4, monotone in `elements`, and 0 for 0 elements.
  virtual std::int64_t encoded_bytes(std::int64_t elements) const = 0;
  /// Encodes every item. On CUDA it enqueues on `stream` and returns. Like decode(), throws
  /// std::logic_error if messages are additive: such messages exist for whole gradients only.
  virtual void encode(std::span<const EncodeItem> items, void* stream = nullptr) const = 0;
  /// Decodes every item. On the CPU, a message that is damaged or too short for its format throws
  /// std::runtime_error, and nothing outside `values` is written. On CUDA, the slice becomes NaN.
  virtual void decode(std::span<const DecodeItem> items, void* stream = nullptr) const = 0;
  /// Throws as decode() does if a message's length does not match its slice, and writes nothing.
  /// CPU only. Does nothing unless traits().varies.
  virtual void check_lengths(std::span<const DecodeItem> items) const;
  /// Upper bound of the temporary GPU memory, in bytes, that encoding a slice takes, or decoding
  /// `messages` messages of a slice.
  virtual std::int64_t temporary_bytes(std::int64_t elements, std::int64_t messages) const;
  /// Completes a residual that an encode left half computed: `state.data` becomes the residual.
  virtual void settle(const State& state, std::int64_t elements, void* stream = nullptr) const;

  // Stages of a gradient, by its shape. The defaults are those of a codec with one stage.

  /// The message of each stage; traits().stages entries. Requires that refusal(shape) is empty.
  virtual std::vector<Stage> stages(Shape shape) const;
  /// Bytes that the stage sends in iteration `step`, the same on all nodes; at most Stage::bytes.
  virtual std::int64_t stage_bytes(Shape shape, int stage, std::uint64_t step) const;
  /// Arrays kept between steps.
  virtual std::vector<StateArray> states(Shape shape) const;
  /// Reason why a gradient of this shape is better sent raw; empty if this codec should send it.
  virtual std::string refusal(Shape shape) const;
  /// Makes the messages of a stage. The means of the earlier stages must be in
  /// StagedSlice::factors. On CUDA it enqueues on `stream` and returns. If messages are additive,
  /// equal means give equal bits on all nodes, whatever their instruction sets. Throws
  /// std::invalid_argument for a stage that does not exist, and for a slice without the memory that
  /// StagedSlice describes.
  virtual void encode_stage(int stage, std::span<const StagedSlice> slices,
                            void* stream = nullptr) const;
  /// Decodes the means of all stages into StagedSlice::values, and updates the states for the next
  /// step. Throws as encode_stage() and decode() do.
  virtual void decode_stages(std::span<const StagedSlice> slices, void* stream = nullptr) const;
};

/// Size in bytes of the arrays that a codec keeps for a gradient of this shape.
std::int64_t state_bytes(const Codec& codec, Shape shape);

/// Computes x = (x / own_divisor + y1 + y2 + …) / sum_divisor in fp32; x are `values`, y `others`.
void merge(std::span<const float* const> others, std::int64_t elements, float* values,
           float own_divisor, float sum_divisor);

/// Merges arrays of `type` likewise. The result is rounded once, at the end.
void merge(std::span<const void* const> others, std::int64_t elements, void* values, ValueType type,
           float own_divisor, float sum_divisor);

/// A parameter of an algorithm and its default ("tau", 0.5).
struct Parameter {
  std::string_view name;
  double value;
  double least, most;  ///< accepted range, inclusive
  bool whole = false;  ///< whole numbers only
  bool own = false;    ///< if not 0, it sets CodecTraits::own_optimizer
  /// Names of the values 0, 1, 2 …, from `least` 0 to `most`; empty if values are numbers.
  std::vector<std::string_view> names = {};
};

/// Minimal memory traffic, in bytes per fp32 element, if everything is read and written once. Also
/// the number of kernels that a GPU launches one after the other.
struct Traffic {
  double encode = 0;
  double decode = 0;
  double decode_add = 0;
  int encode_kernels = 1;
  int decode_kernels = 1;  ///< for a decode, and for a decode-and-add
};

/// One row per algorithm: drives command lines, documentation, tests and benchmarks.
/// Adding an algorithm is one file and one row.
struct AlgorithmRow {
  std::string_view name;
  /// Rank by loss of precision, from kFinest (half precision) to kCoarsest; 0 if lossless or
  /// unknown, as for users' programs.
  int coarseness = 0;
  Traffic traffic;  ///< traffic with default parameters; all 0 if unknown
  std::string_view help;
  std::vector<Parameter> parameters;
  /// Makes the codec; `values` holds every parameter. Null if this build has no back end for the
  /// device.
  std::function<std::unique_ptr<Codec>(const std::map<std::string, double>& values, Device device)>
      make;
  bool additive = false;  ///< see CodecTraits::additive
  /// Decoding restores the encoded bits exactly; message lengths vary with the data.
  bool lossless = false;
};

/// Bounds of AlgorithmRow::coarseness.
inline constexpr int kFinest = 1, kCoarsest = 5;

const std::vector<AlgorithmRow>& algorithms();

/// The row of "tbq" or "tbq(tau=0.25)"; null if the table has none.
const AlgorithmRow* find_algorithm(std::string_view text);

/// Value of a parameter in an algorithm's text, else its default in the table: 0.01 for "dgc" and
/// "rho". If the parameter's values have names, the index of the name. Empty if neither the text
/// nor the table has the parameter.
std::optional<double> parameter_value(std::string_view text, std::string_view name);

/// Warning for an algorithm that does not average gradients, in one or more sentences; empty if it
/// averages.
std::string optimizer_note(std::string_view text);

/// Comma-separated names of all algorithms, for messages and help: "onebit,tbq,terngrad,…".
std::string algorithm_names();

/// True if the text names an algorithm of the table or a user's program: "tbq", "tbq(tau=0.25)",
/// "mine.pse". make_codec() checks whether it can be made.
bool names_algorithm(std::string_view text);

/// Default time limit for the C++ compiler on a user's program.
inline constexpr double kCompileTimeout_s = 120;

/// Makes the codec for "tbq", "tbq(tau=0.25)" or a CompLL program, "path/mine.pse(x=1)". A program
/// is compiled unless it was compiled before; user/algorithm.hpp and user/algorithm_cuda.hpp list
/// the errors. The code runs with this user's rights, so a caller that takes the text from a file
/// must check it with plans/trust.hpp first. Throws std::invalid_argument for an invalid text, with
/// a message that lists the algorithms, or the parameters with their ranges.
std::unique_ptr<Codec> make_codec(std::string_view text, Device device = Device::kCpu,
                                  double compile_timeout_s = kCompileTimeout_s);

}  // namespace hipress::kernels
