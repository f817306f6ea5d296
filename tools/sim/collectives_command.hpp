#pragma once

namespace hipress::sim {

/// `hipress-sim collectives`: published collectives beside what the model says of them.
int run_collectives_command(int argc, char** argv);

}  // namespace hipress::sim
