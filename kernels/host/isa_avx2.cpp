// Compiled for AVX2 and F16C (kernels/CMakeLists.txt); runs only where isa.cpp finds them.
#include "kernels/host/loops_body.hpp"

HIPRESS_DEFINE_HOST_LOOPS(Avx2Isa, FloatVector)
