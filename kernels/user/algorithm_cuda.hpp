#pragma once

#include "kernels/cuda/kernels.hpp"
#include "kernels/user/algorithm.hpp"
#include "kernels/user/nvrtc.hpp"

/// User programs on GPUs; the counterpart of user/algorithm.hpp.
namespace hipress::kernels {

/// Returns the machine code of a program's kernels for GPUs of compute capability `capability` (90
/// for 9.0). Reads it from a ProgramCache under a key of all inputs (program, headers, NVRTC,
/// flags); if it is not there, compiles it and stores it there.
GpuCode gpu_code(const Nvrtc& nvrtc, const UserProgram& program, int capability);

/// Kernels of a program for the current GPU, kept until the process ends. Throws io::RunError if
/// there is no GPU, if no NVRTC can compile for it, if NVRTC fails, or if the program takes more
/// than kMaxCudaPasses measuring passes.
const CudaKernels& load_kernels(const UserProgram& program);

}  // namespace hipress::kernels
