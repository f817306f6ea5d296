#pragma once

#include <string>

#include "kernels/compll/elaborate.hpp"
#include "kernels/compll/emit.hpp"

namespace hipress::compll {

/// Compiles a program as file "t.pse". Returns the error's text, or "" if it compiles.
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
