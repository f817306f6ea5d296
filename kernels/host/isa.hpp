#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/codec/codec.hpp"

/// Instruction sets. The host loops are built once for each; which one runs is decided at run time.
/// All give the same bits.
namespace hipress::kernels {

enum class Isa : std::uint8_t {
  kScalar,    ///< one lane, as a CUDA thread sees it: the plain path that the others are tested
              ///< against
  kPortable,  ///< vectors of four, on any processor (SSE2, NEON …)
  kAvx2,      ///< with F16C
  kAvx512,    ///< F, BW, DQ and VL
};

/// Those that this build has and this processor runs, slowest first.
const std::vector<Isa>& available_isas();

/// The fastest of them: what make_codec uses.
Isa best_isa();

/// "scalar", "portable", "avx2", "avx512".
std::string_view to_string(Isa isa);

/// make_codec for the CPU with an instruction set chosen by hand: for tests and benchmarks.
/// Throws std::invalid_argument as make_codec does, and if `isa` is not available here.
std::unique_ptr<Codec> make_codec_for(std::string_view text, Isa isa);

}  // namespace hipress::kernels
