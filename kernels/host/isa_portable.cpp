// Compiled with the compiler's generic vectors of four floats, for any processor.
#include "kernels/host/loops_body.hpp"

HIPRESS_DEFINE_HOST_LOOPS(PortableIsa, FloatVector)
