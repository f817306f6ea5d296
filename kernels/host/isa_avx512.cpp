// Compiled for AVX-512 F, BW, DQ and VL (kernels/CMakeLists.txt); runs only where isa.cpp finds
// them.
#include "kernels/host/loops_body.hpp"

HIPRESS_DEFINE_HOST_LOOPS(Avx512Isa, FloatVector)
