#pragma once

/// What a file of generated code includes: the frame for whoever compiles it.
#ifdef __CUDACC__
#include "kernels/export_cuda.cuh"
#else
#include "kernels/export_host.hpp"
#endif
