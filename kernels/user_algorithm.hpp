#pragma once

#include <string>

#include "kernels/compiled_algorithm.hpp"

namespace hipress::kernels {

/// A CompLL program, compiled for this processor.
struct UserProgram {
  const CompiledAlgorithm* algorithm;
  std::string path;  ///< for messages
  std::string code;  ///< what the program became, as C++ and as CUDA
};

/// The algorithm of a CompLL program (XEncode.pse with XDecode.pse beside it, or both in one file),
/// compiled for this processor by the system's C++ compiler and kept for as long as the process
/// runs. What has been compiled lies in io::cache_folder() under a name made of all that it depends
/// on (program, headers, compiler, flags), and is loaded from there the next time.
///
/// compll::CompileError for a program that is wrong, io::InputError for files that cannot be read
/// or a cache folder that cannot be written, io::RunError if there is no compiler or it fails.
const UserProgram& load_program(const std::string& path);

}  // namespace hipress::kernels
