#pragma once

/// What a file of generated code includes: the frame for whoever compiles it.
#ifdef __CUDACC__
#include "kernels/cuda/export.cuh"
#else
#include "kernels/host/export.hpp"
#endif
