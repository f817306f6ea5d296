#pragma once

namespace hipress::sweep {

/// `hipress-sim sweep`, with `sweep` as its argv[0]. Returns the exit status.
int run_sweep_command(int argc, char** argv);

}  // namespace hipress::sweep
