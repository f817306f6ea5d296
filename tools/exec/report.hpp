#pragma once

#include <iosfwd>

#include "requests/replay.hpp"

namespace hipress::replay {

/// Prints predicted beside measured times as text.
void print(std::ostream& out, const requests::Replayed& replayed);

}  // namespace hipress::replay
