#pragma once

#include <string>

namespace hipress::costs {

/// Shortest text that parses back to exactly this value, in a readable unit if possible.
std::string exact_bandwidth(double bytes_per_s);
std::string exact_duration(double seconds);

}  // namespace hipress::costs
