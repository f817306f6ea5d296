#pragma once

/// What a file of generated code includes that is a quantiser of blocks: its frame.
#ifdef __CUDACC__
#include "kernels/cuda/block_quantizer.cuh"
#else
#include "kernels/host/block_quantizer_body.hpp"
#endif
