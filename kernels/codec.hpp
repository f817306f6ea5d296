#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::kernels {

/// Where kernels run. A CUDA stream is passed as void* so that this header needs no toolkit.
enum class Device : std::uint8_t { kCpu, kCuda };

/// How a gradient lies in memory. Arithmetic is fp32 whatever the type: an encode widens what it
/// reads, which is exact, and a decode rounds once, at the end, to nearest even, beyond the largest
/// number to infinity. States are fp32.
enum class ValueType : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

constexpr std::int64_t bytes_per_value(ValueType type) {
  return type == ValueType::kFloat32 ? 4 : 2;
}

/// Which draws of the counter-based generator an encode uses: no two (node, gradient, role,
/// element, step) share one.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< iteration
  std::uint32_t node = 0;
  std::uint32_t gradient = 0;
  std::uint32_t role = 0;          ///< worker, server, hop
  std::int64_t first_element = 0;  ///< global index of the slice's element 0
};

/// A slice's residual that was left half done: `State::data` holds the values that were encoded
/// last, and what their message decodes to, under `wire`, is still to be taken from them. The next
/// encode does that in passing, Codec::settle() at any time.
struct Deferred {
  alignas(8) std::byte wire[48] = {};
  bool owed = false;  ///< false: State::data is the residual itself
};

/// Per-element state that an algorithm keeps between steps at one (gradient, role): error-feedback
/// residual, momentum. `count` arrays of the slice's length, each fp32; array i starts at
/// data + i * stride.
struct State {
  float* data = nullptr;  ///< null: the algorithm keeps none, or it is switched off
  std::int64_t stride = 0;
  /// Lets an encode leave its residual half done, which saves a pass over the slice; belongs to
  /// exactly this slice. Null: data is the residual after every encode. The one difference: a slice
  /// with a NaN or infinity leaves the residual as it was when it is null, and as it was but for
  /// the rounding of v = x + residual when it is not.
  Deferred* deferred = nullptr;
};

/// One slice to encode. Pointers are to memory of the codec's device; values need no more alignment
/// than their type has.
struct EncodeItem {
  const void* values = nullptr;  ///< `elements` numbers of `type`
  ValueType type = ValueType::kFloat32;
  std::int64_t elements = 0;
  float divisor = 1;             ///< values are divided by it first
  State state;                   ///< read and updated
  std::byte* message = nullptr;  ///< encoded_bytes(elements) bytes, 16-byte aligned
  DrawKey key;
  int round = 0;  ///< 0 … rounds()-1
  const std::byte* reduced =
      nullptr;  ///< round > 0: the previous round's messages, summed over nodes
  std::int64_t* message_bytes =
      nullptr;  ///< out, may be null: bytes really used, on the codec's device
};

/// What decode does with the decoded values d and the slice x already there, all of it in fp32.
enum class DecodeMode : std::uint8_t {
  kOverwrite,  ///< x = d
  kAdd,        ///< x = (x / own_divisor + d1 + d2 + … in the order given) / sum_divisor
};

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
  bool half_precision = false;  ///< fp16, bf16: strategies divide before they add
  bool additive =
      false;       ///< messages are arrays of fp32 whose sum over nodes is the message of the sum
  int rounds = 1;  ///< dependent exchanges per synchronisation
  int state_arrays = 0;         ///< per role: arrays that State needs (with error feedback on)
  bool error_feedback = false;  ///< on by default
};

/// A compression algorithm with its parameters bound, for one device. Immutable and thread-safe:
/// all state is in the items. Work is given in batches, so that one launch can serve many small
/// tensors.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual const CodecTraits& traits() const = 0;
  /// Bytes of the message of a slice (an upper bound if it varies with the data); a multiple of 4.
  /// Monotone in `elements`; 0 for 0 elements.
  virtual std::int64_t encoded_bytes(std::int64_t elements) const = 0;
  /// Encodes every item; on CUDA enqueues on `stream` and returns.
  virtual void encode(std::span<const EncodeItem> items, void* stream = nullptr) const = 0;
  /// Decodes every item. A message that is too short for its format or damaged is
  /// std::runtime_error on the CPU (nothing is written past `values`); on CUDA the slice becomes
  /// NaN.
  virtual void decode(std::span<const DecodeItem> items, void* stream = nullptr) const = 0;
  /// Makes `state.data` the residual of the slice where an encode left it half done.
  virtual void settle(const State& state, std::int64_t elements, void* stream = nullptr) const;
};

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
};

/// One row per algorithm: drives command lines, documentation, tests and benchmarks.
/// Adding an algorithm is one file and one row.
struct AlgorithmRow {
  std::string_view name;
  std::string_view help;
  std::vector<Parameter> parameters;
  /// `values` holds every parameter. Null if there is no back end for the device in this build.
  std::function<std::unique_ptr<Codec>(const std::map<std::string, double>& values, Device device)>
      make;
};

const std::vector<AlgorithmRow>& algorithms();

/// "onebit,tbq,terngrad,fp16,bf16", for messages and help.
std::string algorithm_names();

/// Whether "tbq", "tbq(tau=0.25)" or "mine.pse" is meant to name an algorithm: one of the table or
/// a program of the user's. Whether it can be made is make_codec's business.
bool names_algorithm(std::string_view text);

/// The codec for "tbq", "tbq(tau=0.25)", or a CompLL program, "path/mine.pse(x=1)", which is
/// compiled where it was not yet (user_algorithm.hpp says what can go wrong). Throws
/// std::invalid_argument that lists the algorithms, or the parameters with their ranges, when the
/// text does not fit.
std::unique_ptr<Codec> make_codec(std::string_view text, Device device = Device::kCpu);

}  // namespace hipress::kernels
