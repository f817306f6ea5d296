#pragma once

#include <string>

#include "io/digest.hpp"
#include "kernels/compll/program.hpp"

namespace hipress::compll {

/// C++ for a program: a struct for one of the frames of kernels/, and the macro that exports it.
/// `sources` is the SHA-256 of the program's text. The program must have an encoder; if it has no
/// decoder, the code encodes and refuses every message. Throws std::length_error for a program that
/// would keep the C++ compiler busy for minutes.
///
/// Of the program's own text, only identifiers reach the code, each behind a prefix that no other
/// name there has: `parameter_`, `v_` or `hipress_`. The struct is named by `sources`.
///
/// The code is of one of four kinds, the first that fits:
///   quantiser of blocks  kernels/frames/block_quantizer.hpp: numbers per block, a code per element
///   quantiser  kernels/frames/quantizer.hpp: one code per element
///   sparsifier   kernels/frames/sparsifier.hpp: indices and values of the largest elements
///   arrays     kernels/frames/array_program.hpp: anything else, one loop per array
/// All kinds compile as C++; all except arrays also compile as CUDA.
std::string emit(const Program& program, const io::Digest& sources);

/// Whether a program's text compiles as CUDA as well.
bool runs_on_gpus(const Program& program);

/// The name under which the code is exported, and of its codec: the program's in lower case.
std::string export_name(const Program& program);

// The kinds, for emit().
std::string emit_blocks(const Program& program, const io::Digest& sources);
std::string emit_quantizer(const Program& program, const io::Digest& sources);
bool is_sparsifier(const Program& program);
std::string emit_sparsifier(const Program& program, const io::Digest& sources);
std::string emit_arrays(const Program& program, const io::Digest& sources);

}  // namespace hipress::compll
