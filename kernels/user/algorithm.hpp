#pragma once

#include <string>

#include "kernels/codec/codec.hpp"
#include "kernels/frames/compiled_algorithm.hpp"

namespace hipress::kernels {

/// A CompLL program, compiled for this processor.
struct UserProgram {
  const CompiledAlgorithm* algorithm;
  std::string path;  ///< name of the program in messages
  std::string code;  ///< generated code, both C++ and CUDA
};

/// Compiles a CompLL program (XEncode.pse with XDecode.pse beside it, or both in one file) for this
/// processor with the system's C++ compiler. The result is kept until the process ends. Compiled
/// programs are cached in a ProgramCache under a key of all inputs (program, headers, compiler,
/// flags), and loaded from there the next time.
///
/// Throws compll::CompileError for an invalid program. Throws io::InputError for files that cannot
/// be read or a cache folder that is refused. Throws io::RunError if there is no compiler, if it
/// fails, or if it exceeds `compile_timeout_s`; it is then killed with all its processes.
const UserProgram& load_program(const std::string& path,
                                double compile_timeout_s = kCompileTimeout_s);

}  // namespace hipress::kernels
