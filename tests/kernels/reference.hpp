#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "kernels/host/isa.hpp"

/// Plain implementations of the codecs, written from the formulas of the design and the documented
/// message layout alone: one element at a time, no code shared with kernels/. What the tests
/// compare with.
namespace hipress::kernels::reference {

/// What an encode gives.
struct Encoded {
  std::vector<std::byte> message;
  std::vector<float> decoded;   ///< what the message stands for
  std::vector<float> residual;  ///< after the encode: all state arrays, one after the other
};

/// v = x / divisor + residual, no larger than the largest finite float; `residual` may be empty.
std::vector<float> values_of(const std::vector<float>& inputs, float divisor,
                             const std::vector<float>& residual);

Encoded onebit(const std::vector<float>& inputs, float divisor, const std::vector<float>& residual);
Encoded tbq(const std::vector<float>& inputs, float divisor, const std::vector<float>& residual,
            float tau);
Encoded terngrad(const std::vector<float>& inputs, float divisor, int bits, const DrawKey& key);
/// The largest ⌈rho · elements⌉ of the pending values. `states` is velocity, then pending values;
/// or empty.
Encoded dgc(const std::vector<float>& inputs, float divisor, const std::vector<float>& states,
            double rho, float momentum);
Encoded graddrop(const std::vector<float>& inputs, float divisor,
                 const std::vector<float>& residual, double rho);
/// How a quantiser of blocks works, besides its codes.
struct Blocks {
  std::int64_t block;
  bool rotate = false, stochastic = false;
};

/// "int8block", "int4block", "fp8block", "fp4block" or "fp4block(format=e2m1)".
Encoded blocks(const std::string& algorithm, const std::vector<float>& inputs, float divisor,
               const DrawKey& key, const Blocks& how);
/// The magnitudes of codes 0 to 7 of E3M0, or of E2M1.
std::vector<float> magnitudes_of_fp4(bool e2m1);
/// A block's rotation, in place: the largest power of two of its values, then of the rest …
void rotate(float* values, std::int64_t count);
Encoded fp16(const std::vector<float>& inputs, float divisor);
Encoded bf16(const std::vector<float>& inputs, float divisor);

/// The algorithm's encode by its name in the registry ("tbq" with its default parameters).
Encoded encode(std::string_view algorithm, const std::vector<float>& inputs, float divisor,
               const std::vector<float>& residual, const DrawKey& key);

/// The numbers nearest to `values` in a 16-bit type, as bit patterns.
std::vector<std::uint16_t> rounded(ValueType type, const std::vector<float>& values);

/// The number that a pattern of a 16-bit type stands for.
float widened(ValueType type, std::uint16_t code);

}  // namespace hipress::kernels::reference

/// Helpers of the tests of kernels/.
namespace hipress::kernels::testing {

/// Lengths around the boundaries of words (32), tiles (1024) and blocks (32768), and a large odd
/// one.
extern const std::vector<std::int64_t> kLengths;

/// Normal numbers with standard deviation 0.7 about 0, the same for the same seed.
std::vector<float> gaussian(std::int64_t elements, std::uint32_t seed);

/// Slices whose largest entries a sample tells little about, by name.
std::vector<std::pair<std::string, std::vector<float>>> hard_slices(std::int64_t elements);

/// A gradient as it lies in memory.
struct Stored {
  ValueType type;
  std::vector<std::byte> bytes;

  Stored(ValueType of, std::vector<std::byte> content) : type(of), bytes(std::move(content)) {}
  std::int64_t elements() const {
    return static_cast<std::int64_t>(bytes.size()) / bytes_per_value(type);
  }
  bool operator==(const Stored&) const = default;
};

/// `values` in memory of `type`, rounded, and what memory holds as fp32: by the plain conversions.
Stored stored(ValueType type, const std::vector<float>& values);
std::vector<float> loaded(const Stored& values);

/// "fp32", "fp16", "bf16".
std::string_view to_string(ValueType type);

/// Encodes with `codec` from and into memory that begins `offset` elements after a 64-byte
/// boundary; the residual, all state arrays one after the other, is updated. Fails the test if
/// something outside the slice was written.
std::vector<std::byte> encode(const Codec& codec, const Stored& inputs, float divisor,
                              std::vector<float>* residual, const DrawKey& key, int offset = 0);
std::vector<std::byte> encode(const Codec& codec, const std::vector<float>& inputs, float divisor,
                              std::vector<float>* residual, const DrawKey& key, int offset = 0);

/// Decodes one message over NaNs, so that an element left out shows. Fails the test if something
/// outside the slice was written.
Stored decode(const Codec& codec, const std::vector<std::byte>& message, std::int64_t elements,
              ValueType type, int offset = 0);
std::vector<float> decode(const Codec& codec, const std::vector<std::byte>& message,
                          std::int64_t elements, int offset = 0);

/// x = (x / own + d1 + d2 + …) / sum.
Stored decode_add(const Codec& codec, const std::vector<std::vector<std::byte>>& messages,
                  const Stored& x, float own_divisor, float sum_divisor, int offset = 0);
std::vector<float> decode_add(const Codec& codec,
                              const std::vector<std::vector<std::byte>>& messages,
                              const std::vector<float>& x, float own_divisor, float sum_divisor,
                              int offset = 0);

/// Equal to the bit (so that NaN equals NaN and -0 is not 0).
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

/// "avx2: tbq, 33 elements, offset 1": what a failing comparison prints.
std::string describe(Isa isa, std::string_view algorithm, std::int64_t elements, int offset);

}  // namespace hipress::kernels::testing
