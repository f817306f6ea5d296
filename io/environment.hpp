#pragma once

#include <optional>
#include <string>

namespace hipress::io {

// Every environment variable that any tool reads is read in environment.cpp.

/// Who this process is in a job started by a launcher.
struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::string launcher;  ///< "torchrun", "slurm", "openmpi"
};

/// Reads RANK/WORLD_SIZE/LOCAL_RANK (torchrun and plain), SLURM_PROCID/SLURM_NTASKS/SLURM_LOCALID,
/// OMPI_COMM_WORLD_RANK/SIZE/LOCAL_RANK, in this order; nullopt when none is set. InputError when a
/// pair is incomplete or not a sensible number. One Slurm task counts as no launcher, so that a tool
/// works inside an interactive allocation.
std::optional<Launch> read_launch();

/// NO_COLOR is set and not empty.
bool no_color();

}  // namespace hipress::io
