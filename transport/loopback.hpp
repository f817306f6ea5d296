#pragma once

#include <string>

namespace hipress::transport {

/// Loopback address for a value of JobOptions::interface: "127.0.0.1" if it is empty; `interface`
/// itself if it is a loopback address or interface. Otherwise empty: other hosts reach the rank.
std::string loopback(const std::string& interface);

}  // namespace hipress::transport
