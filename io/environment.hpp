#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hipress::io {

// Every environment variable that any tool reads is read in environment.cpp.

/// Who this process is in a job started by a launcher.
struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::string launcher;  ///< "torchrun", "slurm", "openmpi"
};

/// Reads RANK/WORLD_SIZE/LOCAL_RANK (torchrun and plain), OMPI_COMM_WORLD_RANK/SIZE/LOCAL_RANK,
/// SLURM_PROCID/SLURM_NTASKS/SLURM_LOCALID, in this order (mpirun inside a Slurm job inherits the
/// batch script's SLURM_PROCID, the same for all); nullopt when none is set. InputError that names
/// the variable when a pair is incomplete or not a sensible number. One Slurm task, or a Slurm
/// allocation in which this process was not launched (SLURM_NTASKS alone), counts as no launcher,
/// so that a tool works in an interactive job.
std::optional<Launch> read_launch();

/// NO_COLOR is set and not empty.
bool no_color();

/// The folder for what can be made again: HIPRESS_CACHE, else hipress in XDG_CACHE_HOME, else
/// .cache/hipress in HOME. InputError if none of the three is set.
std::string cache_folder();

/// The C++ compiler for algorithms compiled at run time: CXX, else "c++".
std::string cxx_compiler();

/// The CUDA toolkits that the user points to, those that are set of CUDA_HOME and CUDA_PATH. NVRTC
/// is looked for in their lib64 and lib first.
std::vector<std::string> cuda_toolkits();

/// The file of NCCL's library: HIPRESS_NCCL, else nothing; the loader then looks for it.
std::string nccl_path();

}  // namespace hipress::io
