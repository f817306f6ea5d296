// One lane at a time, for any processor: the plain path.
#include "kernels/host/loops_body.hpp"

HIPRESS_DEFINE_HOST_LOOPS(ScalarIsa, float)
