#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/codec/codec.hpp"

/// Instruction sets. The host loops are built once per instruction set, and one is chosen at run
/// time. All give the same bits.
namespace hipress::kernels {

enum class Isa : std::uint8_t {
  kScalar,    ///< one lane, like a CUDA thread: the reference path in tests
  kPortable,  ///< vectors of four, on any processor (SSE2, NEON …)
  kAvx2,      ///< with F16C
  kAvx512,    ///< F, BW, DQ and VL
};

/// Instruction sets that this build has and this processor runs, slowest first.
const std::vector<Isa>& available_isas();

/// The fastest available instruction set, which make_codec() uses.
Isa best_isa();

/// Name of an instruction set: "scalar", "portable", "avx2", "avx512".
std::string_view to_string(Isa isa);

/// Makes a codec for the CPU with a chosen instruction set, for tests and benchmarks. Throws
/// std::invalid_argument as make_codec() does, and if `isa` is not available here.
std::unique_ptr<Codec> make_codec_for(std::string_view text, Isa isa);

}  // namespace hipress::kernels
