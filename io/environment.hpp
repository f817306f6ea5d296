#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hipress::io {

// Every environment variable that any tool reads or sets is read and set in environment.cpp.

/// Who this process is in a job started by a launcher.
struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::string launcher;  ///< "torchrun", "slurm", "openmpi"
};

/// Reads RANK/WORLD_SIZE/LOCAL_RANK (torchrun and plain), OMPI_COMM_WORLD_RANK/SIZE/LOCAL_RANK,
/// SLURM_PROCID/SLURM_STEP_NUM_TASKS/SLURM_LOCALID, in this order (mpirun inside a Slurm job
/// inherits the batch script's SLURM_PROCID, the same for all); nullopt when none is set. Outside
/// of a job (no SLURM_JOB_ID), SLURM_NTASKS stands in for SLURM_STEP_NUM_TASKS. InputError that
/// names the variable if a rank of the first two kinds has no size, or a size no rank, or a value
/// is no sensible number. Also nullopt in a single Slurm task, and in a Slurm job's processes that
/// srun did not start (a batch script, an allocation's shell): tools work there, too.
std::optional<Launch> read_launch();

/// Chooses the GPU of this process among the `visible` ones, which CUDA numbers from 0: the one
/// whose number is the local rank, or the only one. So a launcher may show each process one GPU of
/// its own (srun --gpus-per-task=1, CUDA_VISIBLE_DEVICES), and ranks may share a machine's only
/// GPU. 0 without a launcher. InputError if there is no GPU, or none for this local rank.
int choose_gpu(const std::optional<Launch>& launch, int visible);

/// NO_COLOR is set and not empty.
bool no_color();

/// The folder for what can be made again: HIPRESS_CACHE, else hipress in XDG_CACHE_HOME, else
/// .cache/hipress in HOME. InputError if none of the three is set.
std::string cache_folder();

/// HIPRESS_DATA: the folder with models/ and profiler/, for an installation whose tools are not run
/// in place, such as the bundle's under its own dynamic loader. Empty if it is not set.
std::string data_folder();

/// The C++ compiler for algorithms compiled at run time: CXX, which may be a command of several
/// words ("ccache g++"), else "c++".
std::string cxx_compiler();

/// The CUDA toolkits that the user points to, those that are set of CUDA_HOME and CUDA_PATH. NVRTC
/// is looked for in their lib64 and lib first.
std::vector<std::string> cuda_toolkits();

/// The file of NCCL's library: HIPRESS_NCCL, else nothing; the loader then looks for it.
std::string nccl_path();

/// HIPRESS_REDIS_PASSWORD: of the Redis where ranks meet, if its URL has none. The command line,
/// which other users of the machine can read, then does not show it.
std::string redis_password();

/// HIPRESS_REDIS_CA: a file in PEM with the authorities that the certificate of a Redis may be
/// signed by (rediss://); empty for those that the system trusts.
std::string redis_authorities();

/// Sets NCCL_SOCKET_IFNAME, which NCCL reads when it is first used, unless the user has set it. To
/// be called while there is one thread.
void set_nccl_interface(const std::string& interface);

}  // namespace hipress::io
