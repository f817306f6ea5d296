#pragma once

/// Includes the frame of a generated block quantiser, for nvcc or the host compiler.
#ifdef __CUDACC__
#include "kernels/cuda/block_quantizer.cuh"
#else
#include "kernels/host/block_quantizer_body.hpp"
#endif
