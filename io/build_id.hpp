#pragma once

#include <string>

namespace hipress::io {

/// What the linker wrote into the program or library that this code is part of, as hexadecimal
/// digits: another one where the code is another. Empty if it wrote none.
std::string build_id();

}  // namespace hipress::io
