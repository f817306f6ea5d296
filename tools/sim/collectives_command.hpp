#pragma once

namespace hipress::sim {

/// `hipress-sim collectives`: prints published measurements of collectives beside the model's
/// predictions. Returns the exit status.
int run_collectives_command(int argc, char** argv);

}  // namespace hipress::sim
