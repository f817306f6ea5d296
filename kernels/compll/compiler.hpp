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

/// Compiles the algorithm that a file belongs to: the file, and where it holds an encoder or a
/// decoder alone, the file beside it that is called the same but for Encode and Decode
/// (XEncode.pse, XDecode.pse). CompileError for a program that is wrong, io::InputError for a file
/// that cannot be read or a decoder without its encoder.
Compiled compile(const std::string& path);

}  // namespace hipress::compll
