#pragma once

#include "kernels/cuda/kernels.hpp"
#include "kernels/user/algorithm.hpp"
#include "kernels/user/nvrtc.hpp"

/// The GPU's half of user/algorithm.hpp.
namespace hipress::kernels {

/// The machine code of a program's kernels for GPUs of compute capability `capability` (90 for
/// 9.0). It lies in a ProgramCache under a name made of all that it depends on (program, headers,
/// NVRTC, flags); if it is not there, it is compiled and put there.
GpuCode gpu_code(const Nvrtc& nvrtc, const UserProgram& program, int capability);

/// A program's kernels for the current GPU, kept for as long as the process runs. io::RunError if
/// there is no GPU, if no NVRTC can compile for it, if NVRTC fails, or if the program takes more
/// measuring passes than kMaxCudaPasses.
const CudaKernels& load_kernels(const UserProgram& program);

}  // namespace hipress::kernels
