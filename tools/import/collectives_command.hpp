#pragma once

namespace hipress::traces {

/// `hipress-import collectives`: logs of nccl-tests into a profile.
int run_collectives_command(int argc, char** argv);

}  // namespace hipress::traces
