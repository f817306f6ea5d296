#pragma once

#include <string>

namespace hipress::io {

/// What this machine, or container, calls itself; empty if it does not say.
std::string host_name();

/// Linux's boot id: the same text in all processes of a machine, also in its containers, until it
/// starts anew; empty where there is none.
std::string boot_id();

}  // namespace hipress::io
