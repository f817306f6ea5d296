#pragma once

#include <string>

#include "io/digest.hpp"
#include "kernels/compll/program.hpp"

namespace hipress::compll {

/// Generates C++ for a program: a struct for one of the frames of kernels/, and the macro that
/// exports it. `sources` is the SHA-256 of the program's text. The program must have an encoder;
/// without a decoder, the code encodes and refuses every message. Throws std::length_error if the
/// code would have more than 1000 operations per element or 20000 lines.
///
/// Only identifiers of the program's text reach the code. Names made of them have a prefix that no
/// other name has (`parameter_`, `v_`, `hipress_` …). The struct's name is derived from `sources`.
///
/// The code is of one of four kinds, the first that fits (headers are in kernels/frames/):
///   block quantiser  block_quantizer.hpp: numbers per block, a code per element
///   quantiser        quantizer.hpp: one code per element
///   sparsifier       sparsifier.hpp: indices and values of the largest elements
///   arrays           array_program.hpp: anything else, one loop per array
/// All kinds compile as C++; all except arrays also compile as CUDA.
std::string emit(const Program& program, const io::Digest& sources);

/// True if the generated code also compiles as CUDA.
bool runs_on_gpus(const Program& program);

/// Name of the codec: the program's name in lower case. The exported symbol is hipress_NAME.
std::string export_name(const Program& program);

// One generator for each kind, for emit().
std::string emit_blocks(const Program& program, const io::Digest& sources);
std::string emit_quantizer(const Program& program, const io::Digest& sources);
bool is_sparsifier(const Program& program);
std::string emit_sparsifier(const Program& program, const io::Digest& sources);
std::string emit_arrays(const Program& program, const io::Digest& sources);

}  // namespace hipress::compll
