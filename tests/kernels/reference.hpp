#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "kernels/host/isa.hpp"

/// Plain implementations of the codecs, with which tests compare. They follow the published
/// formulas and the documented layout of messages, process one element at a time, and share no code
/// with kernels/.
namespace hipress::kernels::reference {

/// Results of an encode.
struct Encoded {
  std::vector<std::byte> message;
  std::vector<float> decoded;   ///< values to which the message decodes
  std::vector<float> residual;  ///< after the encode: all state arrays, one after the other
};

/// Values v = x / divisor + residual, clamped to finite floats; `residual` may be empty.
std::vector<float> values_of(const std::vector<float>& inputs, float divisor,
                             const std::vector<float>& residual);

Encoded onebit(const std::vector<float>& inputs, float divisor, const std::vector<float>& residual);
Encoded tbq(const std::vector<float>& inputs, float divisor, const std::vector<float>& residual,
            float tau);
Encoded terngrad(const std::vector<float>& inputs, float divisor, int bits, const DrawKey& key);
/// Sends the ⌈rho · elements⌉ largest pending values. `states` is the velocities, then the pending
/// values; or empty.
Encoded dgc(const std::vector<float>& inputs, float divisor, const std::vector<float>& states,
            double rho, float momentum);
Encoded graddrop(const std::vector<float>& inputs, float divisor,
                 const std::vector<float>& residual, double rho);
/// Parameters of a block quantiser.
struct Blocks {
  std::int64_t block;
  bool rotate = false, stochastic = false;
};

/// Encodes with "int8block", "int4block", "fp8block", "fp4block" or "fp4block(format=e2m1)".
Encoded blocks(const std::string& algorithm, const std::vector<float>& inputs, float divisor,
               const DrawKey& key, const Blocks& how);
/// The magnitudes of codes 0 to 7 of E3M0, or of E2M1.
std::vector<float> magnitudes_of_fp4(bool e2m1);
/// Rotates a block in place: first the largest group whose size is a power of two, then the largest
/// in the rest, and so on.
void rotate(float* values, std::int64_t count);
Encoded fp16(const std::vector<float>& inputs, float divisor);
Encoded bf16(const std::vector<float>& inputs, float divisor);

/// Encodes with the algorithm of this name in the registry ("tbq"), with its default parameters.
Encoded encode(std::string_view algorithm, const std::vector<float>& inputs, float divisor,
               const std::vector<float>& residual, const DrawKey& key);

/// The numbers nearest to `values` in a 16-bit type, as bit patterns.
std::vector<std::uint16_t> rounded(ValueType type, const std::vector<float>& values);

/// The number with this bit pattern in a 16-bit type.
float widened(ValueType type, std::uint16_t code);

}  // namespace hipress::kernels::reference

/// Helpers of the tests of kernels/.
namespace hipress::kernels::testing {

/// Lengths around the boundaries of words (32), tiles (1024) and blocks (32768), and a large odd
/// one.
extern const std::vector<std::int64_t> kLengths;

/// Normally distributed numbers with mean 0 and standard deviation 0.7, determined by the seed.
std::vector<float> gaussian(std::int64_t elements, std::uint32_t seed);

/// Named slices whose largest entries are hard to estimate from a sample.
std::vector<std::pair<std::string, std::vector<float>>> hard_slices(std::int64_t elements);

/// A gradient in memory.
struct Stored {
  ValueType type;
  std::vector<std::byte> bytes;

  Stored(ValueType of, std::vector<std::byte> content) : type(of), bytes(std::move(content)) {}
  std::int64_t elements() const {
    return static_cast<std::int64_t>(bytes.size()) / bytes_per_value(type);
  }
  bool operator==(const Stored&) const = default;
};

/// Rounds `values` to numbers of `type` in memory; loaded() widens them to fp32.
Stored stored(ValueType type, const std::vector<float>& values);
std::vector<float> loaded(const Stored& values);

/// Name of a type: "fp32", "fp16", "bf16".
std::string_view to_string(ValueType type);

/// Encodes with `codec` from and into memory that begins `offset` elements after a 64-byte
/// boundary. Updates `residual`, which holds all state arrays, one after the other. Fails the test
/// if the codec writes outside the slice.
std::vector<std::byte> encode(const Codec& codec, const Stored& inputs, float divisor,
                              std::vector<float>* residual, const DrawKey& key, int offset = 0);
std::vector<std::byte> encode(const Codec& codec, const std::vector<float>& inputs, float divisor,
                              std::vector<float>* residual, const DrawKey& key, int offset = 0);

/// Decodes one message into memory filled with NaNs, so that a missed element shows. Fails the test
/// if the codec writes outside the slice.
Stored decode(const Codec& codec, const std::vector<std::byte>& message, std::int64_t elements,
              ValueType type, int offset = 0);
std::vector<float> decode(const Codec& codec, const std::vector<std::byte>& message,
                          std::int64_t elements, int offset = 0);

/// Computes x = (x / own_divisor + d1 + d2 + …) / sum_divisor for decoded messages d1, d2 ….
Stored decode_add(const Codec& codec, const std::vector<std::vector<std::byte>>& messages,
                  const Stored& x, float own_divisor, float sum_divisor, int offset = 0);
std::vector<float> decode_add(const Codec& codec,
                              const std::vector<std::vector<std::byte>>& messages,
                              const std::vector<float>& x, float own_divisor, float sum_divisor,
                              int offset = 0);

/// True if all bits are equal, so that NaN equals NaN and -0 differs from 0.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

/// Text that a failing comparison prints: "avx2: tbq, 33 elements, offset 1".
std::string describe(Isa isa, std::string_view algorithm, std::int64_t elements, int offset);

}  // namespace hipress::kernels::testing
