// Compiled for one lane at a time, for any processor: the reference path of tests.
#include "kernels/host/loops_body.hpp"

HIPRESS_DEFINE_HOST_LOOPS(ScalarIsa, float)
