// Compiled for AVX-512 F, BW, DQ and VL (kernels/CMakeLists.txt); runs only where isa.cpp finds
// them.
#include "kernels/lowrank/loops_body.hpp"

namespace hipress::kernels::lowrank {

const Loops avx512_loops = loops_for<FloatVector>();

}  // namespace hipress::kernels::lowrank
