#pragma once

#include <iosfwd>

#include "requests/replay.hpp"

namespace hipress::replay {

/// For people: predicted beside measured.
void print(std::ostream& out, const requests::Replayed& replayed);

}  // namespace hipress::replay
