#pragma once

#include <vector>

#include "kernels/compll/program.hpp"
#include "kernels/compll/source.hpp"

namespace hipress::compll {

/// Checks the functions of all sources, which together are one algorithm (encoder, decoder or both,
/// and helper functions), and turns them into a program by symbolic execution. Throws CompileError
/// at the first error. The result does not refer to the sources.
Elaborated elaborate(const std::vector<const Source*>& sources);

}  // namespace hipress::compll
