#pragma once

#include <string>

#include "kernels/compll/elaborate.hpp"
#include "kernels/compll/emit.hpp"

namespace hipress::compll {

/// What the compiler says to a program: the message, or "" if it compiles. The file is "t.pse".
inline std::string complaint(const std::string& text) {
  const Source source{"t.pse", text};
  try {
    const Elaborated elaborated = elaborate({&source});
    if (elaborated.program.encoder) emit(elaborated.program, {});
    return "";
  } catch (const CompileError& error) {
    return error.what();
  }
}

}  // namespace hipress::compll
