#pragma once

#include <vector>

#include "kernels/compll/program.hpp"
#include "kernels/compll/source.hpp"

namespace hipress::compll {

/// Checks the functions of all sources, which together are one algorithm (its encoder, its decoder
/// or both, and helper functions), and runs them on values instead of numbers: what remains is the
/// program. CompileError at the first thing that is wrong. The sources must outlive nothing.
Elaborated elaborate(const std::vector<const Source*>& sources);

}  // namespace hipress::compll
