#pragma once

#include "requests/hosts.hpp"

namespace hipress::planner {

/// Prints the table of numbers of hosts, what would be otherwise, and the sentence first.
void print_hosts(const requests::HostsAnswer& answer);

}  // namespace hipress::planner
