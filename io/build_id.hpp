#pragma once

#include <string>

namespace hipress::io {

/// Build ID that the linker wrote into this program or library, as hexadecimal digits; empty if
/// absent. It changes with the code.
std::string build_id();

}  // namespace hipress::io
