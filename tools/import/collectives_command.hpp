#pragma once

namespace hipress::traces {

/// `hipress-import collectives`: makes a profile from logs of nccl-tests, OSU or perftest. Returns
/// the exit status.
int run_collectives_command(int argc, char** argv);

}  // namespace hipress::traces
