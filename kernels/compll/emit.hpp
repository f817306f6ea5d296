#pragma once

#include <string>

#include "kernels/compll/program.hpp"

namespace hipress::compll {

/// C++ for a program: a struct as kernels/quantizer.hpp describes it and what exports it. The same
/// text compiles as C++ and as CUDA. `origin` names the sources, for a comment. The program must
/// have an encoder; without a decoder the code encodes and refuses every message.
std::string emit(const Program& program, const std::string& origin);

/// The name under which the code is exported, and of its codec: the program's in lower case.
std::string export_name(const Program& program);

}  // namespace hipress::compll
