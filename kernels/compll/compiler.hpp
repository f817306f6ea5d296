#pragma once

#include <string>

#include "kernels/compll/program.hpp"
#include "kernels/compll/source.hpp"

/// The CompLL compiler. An example that compiles a program and writes PyTorch operators for it
/// (wrap() is in wrappers.hpp):
///
///   try {
///     const Compiled compiled = compile("TbqEncode.pse");  // reads TbqDecode.pse, too
///     for (const std::string& note : compiled.notes) std::cerr << note << "\n";
///     std::ofstream("tbq.cpp") << compiled.code;
///     std::ofstream("tbq_pytorch.cpp")
///         << wrap(compiled, "TbqEncode.pse", "tbq", "pytorch", WrapperPart::kBoth);
///   } catch (const CompileError& error) {
///     std::cerr << error.what() << "\n";  // file, line, column, and the line with a caret
///   }
namespace hipress::compll {

struct Compiled {
  Program program;
  std::string code;  ///< C++20, and CUDA if runs_on_gpus(); needs only -I<project root>
  Notes notes;
};

/// Compiles the algorithm in a file. XEncode.pse and XDecode.pse (or X_encode.pse and X_decode.pse)
/// may each hold a half; `path` may name either, and the other is read too if it exists. Any other
/// file holds the whole algorithm. Throws CompileError for an invalid program, and io::InputError
/// for a file that cannot be read or for a decoder without its encoder.
Compiled compile(const std::string& path);

}  // namespace hipress::compll
