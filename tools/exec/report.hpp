#pragma once

#include <iosfwd>

#include "requests/replay.hpp"

namespace hipress::replay {

/// Prints the predicted times beside the measured ones, as text.
void print(std::ostream& out, const requests::Replayed& replayed);

}  // namespace hipress::replay
