#pragma once

namespace hipress::traces {

/// `hipress-import topology`: makes a machine file from a host's topology. Returns the exit status.
int run_topology_command(int argc, char** argv);

}  // namespace hipress::traces
