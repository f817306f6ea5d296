#pragma once

#include <string>

namespace hipress::costs {

/// The shortest text that reads back as exactly this value, in a unit for people where possible.
std::string exact_bandwidth(double bytes_per_s);
std::string exact_duration(double seconds);

}  // namespace hipress::costs
