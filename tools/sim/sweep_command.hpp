#pragma once

namespace hipress::sweep {

/// `hipress-sim sweep`; argv[0] is `sweep`. Returns the exit status.
int run_sweep_command(int argc, char** argv);

}  // namespace hipress::sweep
