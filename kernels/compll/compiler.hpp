#pragma once

#include <string>

#include "kernels/compll/program.hpp"
#include "kernels/compll/source.hpp"

namespace hipress::compll {

/// A program as code.
struct Compiled {
  Program program;
  std::string code;  ///< compiles alone, as C++20 and as CUDA, with -I<project root>
  Notes notes;
};

/// Compiles the algorithm that a file belongs to. Of XEncode.pse and XDecode.pse (or
/// X_encode.pse and X_decode.pse), which may each hold a half, either may be given: the other is
/// read, too, if it is there. Any other file holds the whole algorithm. CompileError for a program
/// that is wrong; io::InputError for a file that cannot be read, or for a decoder without its
/// encoder.
Compiled compile(const std::string& path);

}  // namespace hipress::compll
