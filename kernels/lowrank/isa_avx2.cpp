// Compiled for AVX2 and F16C (kernels/CMakeLists.txt); runs only where isa.cpp finds them.
#include "kernels/lowrank/loops_body.hpp"

namespace hipress::kernels::lowrank {

const Loops avx2_loops = loops_for<FloatVector>();

}  // namespace hipress::kernels::lowrank
