#pragma once

#include <string>

namespace hipress::transport {

/// Where a rank with this JobOptions::interface listens, if that is the host's loopback, where no
/// other host reaches it: its address, or the interface as it was given; else empty.
std::string loopback(const std::string& interface);

}  // namespace hipress::transport
