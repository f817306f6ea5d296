#pragma once

#include <string>

namespace hipress::io {

/// Host name of this machine or container; empty if unknown.
std::string host_name();

/// Linux's boot ID: equal for all processes of a machine, containers included, until it reboots.
/// Empty if unavailable.
std::string boot_id();

}  // namespace hipress::io
