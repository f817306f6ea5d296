#pragma once

/// Includes the frame of generated code, for nvcc or the host compiler.
#ifdef __CUDACC__
#include "kernels/cuda/export.cuh"
#else
#include "kernels/host/export.hpp"
#endif
