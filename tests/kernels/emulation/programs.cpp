// Replaces user/algorithm_cuda.cpp in the emulation.

#include "io/error.hpp"
#include "kernels/user/algorithm_cuda.hpp"

namespace hipress::kernels {

const CudaKernels& load_kernels(const UserProgram& program) {
  throw io::RunError(program.path + ": programs compiled at run time are not emulated");
}

}  // namespace hipress::kernels
