#pragma once

namespace hipress::traces {

/// `hipress-import topology`: a host's topology into a machine.
int run_topology_command(int argc, char** argv);

}  // namespace hipress::traces
