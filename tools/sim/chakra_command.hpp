#pragma once

namespace hipress::sim {

/// `hipress-sim --chakra FOLDER`: simulates a graph that --export-chakra wrote. Returns the exit
/// status.
int run_chakra_command(int argc, char** argv);

}  // namespace hipress::sim
