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

namespace hipress::kernels {

/// Where kernels run. A CUDA stream is passed as void* so that this header needs no toolkit.
enum class Device : std::uint8_t { kCpu, kCuda };

/// One slice to decode from one message (or, adding, from several).
struct DecodeItem {
  std::span<const std::byte* const> messages;   ///< 16-byte aligned; exactly one when overwriting
  std::span<const std::int64_t> message_bytes;  ///< their lengths, checked against the format
  std::int64_t elements = 0;
  void* values = nullptr;  ///< `elements` numbers of `type`
  ValueType type = ValueType::kFloat32;
  DecodeMode mode = DecodeMode::kOverwrite;
  float own_divisor = 1;
  float sum_divisor = 1;
};

/// What does not depend on parameters' values.
struct CodecTraits {
  bool half_precision = false;  ///< fp16, bf16: topologies divide before they add
  /// With half precision: of what a message is an array, so that messages can be added as numbers.
  ValueType message_values = ValueType::kFloat32;
  int state_arrays = 0;         ///< per role: arrays that State needs (with error feedback on)
  bool error_feedback = false;  ///< on by default
  bool sparse = false;          ///< messages are entries: indices and values
  bool varies = false;          ///< messages are as long as the data make them
  /// Messages are factors: the mean of all nodes' messages is the message of the mean, so nothing
  /// on the way encodes or decodes, and encode() and decode() are never called.
  bool additive = false;
  int stages = 1;  ///< messages of a gradient, each of which may depend on the means before it
  /// It does to a node's own gradient what an optimizer does, such as momentum: what comes out is
  /// no mean of gradients, and only topologies that encode every node's gradient once can use it.
  bool own_optimizer = false;
};

/// A compression algorithm with its parameters bound, for one device. Immutable and thread-safe:
/// all state is in the items. Work is given in batches, so that one launch can serve many small
/// tensors.
///
/// A codec has one or more stages, most have one: encode_stage() makes the message of a stage, and
/// decode_stages() makes the gradient from the messages of all stages. A codec whose messages are
/// not additive has one stage, which is an encode() and a decode() of the whole gradient; nodes on
/// the way also call decode() and encode() for slices of the gradient.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual const CodecTraits& traits() const = 0;
  /// Bytes of the message of a slice (an upper bound if it varies with the data); a multiple of 4.
  /// Monotone in `elements`; 0 for 0 elements.
  virtual std::int64_t encoded_bytes(std::int64_t elements) const = 0;
  /// Encodes every item; on CUDA enqueues on `stream` and returns. std::logic_error where
  /// messages are additive, which are of whole gradients; so does decode().
  virtual void encode(std::span<const EncodeItem> items, void* stream = nullptr) const = 0;
  /// Decodes every item. On the CPU, a message that is damaged or too short for its format
  /// throws std::runtime_error, and nothing is written past `values`; on CUDA, the slice becomes
  /// NaN.
  virtual void decode(std::span<const DecodeItem> items, void* stream = nullptr) const = 0;
  /// On the CPU, throws as decode() for messages whose lengths are not those of their slices, and
  /// writes nothing. Only where traits().varies there is anything to find.
  virtual void check_lengths(std::span<const DecodeItem> items) const;
  /// At least what an encode of a slice, or a decode of so many messages of one, takes of a GPU's
  /// temporary memory.
  virtual std::int64_t temporary_bytes(std::int64_t elements, std::int64_t messages) const;
  /// Makes `state.data` the residual of the slice where an encode left it half done.
  virtual void settle(const State& state, std::int64_t elements, void* stream = nullptr) const;

  // Stages: what is asked of a codec for gradients of a shape. The defaults are those of one stage.

  /// What each stage sends; as many as traits().stages. The shape must not be refused.
  virtual std::vector<Stage> stages(Shape shape) const;
  /// Bytes that the stage really sends in an iteration, the same on all nodes: at most
  /// Stage::bytes.
  virtual std::int64_t stage_bytes(Shape shape, int stage, std::uint64_t step) const;
  /// The arrays that are kept between steps.
  virtual std::vector<StateArray> states(Shape shape) const;
  /// Why a gradient of the shape is better sent raw; empty: it is not.
  virtual std::string refusal(Shape shape) const;
  /// Makes the messages of a stage; the means of the earlier stages must be in their places. On
  /// CUDA it enqueues on `stream` and returns. Where messages are additive, the same means give the
  /// same bits on all nodes, whatever their instruction sets. std::invalid_argument for a stage
  /// that does not exist, and for a slice that lacks what StagedSlice asks for.
  virtual void encode_stage(int stage, std::span<const StagedSlice> slices,
                            void* stream = nullptr) const;
  /// Leaves what the means of all stages decode to in StagedSlice::values, and the states ready for
  /// the next step. Throws as encode_stage() and decode() do.
  virtual void decode_stages(std::span<const StagedSlice> slices, void* stream = nullptr) const;
};

/// Bytes of the arrays that a codec keeps for a gradient of the shape.
std::int64_t state_bytes(const Codec& codec, Shape shape);

/// x = (x / own_divisor + y1 + y2 + …) / sum_divisor, raw fp32: what Merge does.
void merge(std::span<const float* const> others, std::int64_t elements, float* values,
           float own_divisor, float sum_divisor);

/// The same where x and all y are of `type`; rounded once, at the end.
void merge(std::span<const void* const> others, std::int64_t elements, void* values, ValueType type,
           float own_divisor, float sum_divisor);

/// A parameter of an algorithm and its default ("tau", 0.5).
struct Parameter {
  std::string_view name;
  double value;
  double least, most;  ///< accepted range, inclusive
  bool whole = false;  ///< whole numbers only
  bool own = false;    ///< other than 0, it makes CodecTraits::own_optimizer
  /// What text calls the values 0, 1, 2 …, from `least` 0 to `most`; empty: they are numbers.
  std::vector<std::string_view> names = {};
};

/// Least memory traffic, in bytes per fp32 element: what must be read and written once, on any
/// hardware. And the kernels that a GPU launches for it, one after the other.
struct Traffic {
  double encode = 0;
  double decode = 0;
  double decode_add = 0;
  int encode_kernels = 1;
  int decode_kernels = 1;  ///< of a decode-and-add, too
};

/// One row per algorithm: drives command lines, documentation, tests and benchmarks.
/// Adding an algorithm is one file and one row.
struct AlgorithmRow {
  std::string_view name;
  /// How much of a gradient it gives up, as a place in an order from 1, half precision, to
  /// kCoarsest; 0: nothing, as raw, or not known, as of a program of the user's.
  int coarseness = 0;
  Traffic traffic;  ///< with its default parameters; all 0: not known
  std::string_view help;
  std::vector<Parameter> parameters;
  /// `values` holds every parameter. Null if there is no back end for the device in this build.
  std::function<std::unique_ptr<Codec>(const std::map<std::string, double>& values, Device device)>
      make;
  bool additive = false;  ///< as CodecTraits::additive
  /// It decodes to the bits that were encoded, from messages as long as the data make them.
  bool lossless = false;
};

/// The places of AlgorithmRow::coarseness.
inline constexpr int kFinest = 1, kCoarsest = 5;

const std::vector<AlgorithmRow>& algorithms();

/// The row of "tbq" or "tbq(tau=0.25)"; null for what the table lacks.
const AlgorithmRow* find_algorithm(std::string_view text);

/// The value of a parameter in an algorithm's text, or else its default in the table: 0.01 for
/// "dgc" and "rho". If the parameter's values have names, it is the number of the name. Nothing if
/// the text does not give the parameter and the table does not have it.
std::optional<double> parameter_value(std::string_view text, std::string_view name);

/// What the user of an algorithm's text must know that does not average gradients: one sentence, or
/// more; empty: it averages.
std::string optimizer_note(std::string_view text);

/// "onebit,tbq,terngrad,fp16,bf16", for messages and help.
std::string algorithm_names();

/// Whether "tbq", "tbq(tau=0.25)" or "mine.pse" is meant to name an algorithm: one of the table or
/// a program of the user's. Whether it can be made is make_codec's business.
bool names_algorithm(std::string_view text);

/// How long the C++ compiler may take for a program of the user's, if nothing else is asked for.
inline constexpr double kCompileTimeout_s = 120;

/// The codec for "tbq", "tbq(tau=0.25)" or a CompLL program, "path/mine.pse(x=1)". A program is
/// compiled if it was not yet (user/algorithm.hpp and user/algorithm_cuda.hpp list the errors), and
/// its code runs as this user: a caller that takes the text from a file asks plans/trust.hpp first.
/// Throws std::invalid_argument if the text does not fit or has control characters; the message
/// lists the algorithms, or the parameters with their ranges.
std::unique_ptr<Codec> make_codec(std::string_view text, Device device = Device::kCpu,
                                  double compile_timeout_s = kCompileTimeout_s);

}  // namespace hipress::kernels
