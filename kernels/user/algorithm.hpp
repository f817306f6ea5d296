#pragma once

#include <string>

#include "kernels/codec/codec.hpp"
#include "kernels/frames/compiled_algorithm.hpp"

namespace hipress::kernels {

/// A CompLL program, compiled for this processor.
struct UserProgram {
  const CompiledAlgorithm* algorithm;
  std::string path;  ///< for messages
  std::string code;  ///< what the program became, as C++ and as CUDA
};

/// The algorithm of a CompLL program (XEncode.pse with XDecode.pse beside it, or both in one file),
/// compiled for this processor by the system's C++ compiler and kept for as long as the process
/// runs. What has been compiled lies in a ProgramCache under a name made of all that it depends on
/// (program, headers, compiler, flags), and is loaded from there the next time.
///
/// Throws compll::CompileError for a wrong program; io::InputError for files that cannot be read or
/// a cache folder that is refused; io::RunError if there is no compiler, if it fails, or if it
/// takes longer than `compile_timeout_s` (it is then ended with all its processes).
const UserProgram& load_program(const std::string& path,
                                double compile_timeout_s = kCompileTimeout_s);

}  // namespace hipress::kernels
