#pragma once

#include <string>

#include "kernels/compll/program.hpp"

namespace hipress::compll {

/// C++ for a program: a struct as one of the frames of kernels/ describes it, and what exports it.
/// `origin` names the sources, for a comment. The program must have an encoder; without a decoder
/// the code encodes and refuses every message.
///
/// Three kinds, the first that fits:
///   quantiser  kernels/quantizer.hpp: one code per element
///   selector   kernels/selector.hpp: indices and values of the largest elements
///   arrays     kernels/array_program.hpp: anything else, one loop per array
/// The text of the first two compiles as C++ and as CUDA, that of the third as C++.
std::string emit(const Program& program, const std::string& origin);

/// Whether a program's text compiles as CUDA as well.
bool runs_on_gpus(const Program& program);

/// The name under which the code is exported, and of its codec: the program's in lower case.
std::string export_name(const Program& program);

// The kinds, for emit().
std::string emit_quantizer(const Program& program, const std::string& origin);
bool is_selector(const Program& program);
std::string emit_selector(const Program& program, const std::string& origin);
std::string emit_arrays(const Program& program, const std::string& origin);

}  // namespace hipress::compll
