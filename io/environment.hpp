#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hipress::io {

// All environment variables are read and set in environment.cpp.

/// Identity of this process in a launched job.
struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::string launcher;  ///< "torchrun", "slurm", "openmpi"
};

/// Identity of this process, from the variables of the first of these launchers that are set:
///
/// - torchrun and plain: RANK, WORLD_SIZE, LOCAL_RANK;
/// - Open MPI: OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK;
/// - Slurm: SLURM_PROCID, SLURM_STEP_NUM_TASKS (without SLURM_JOB_ID: SLURM_NTASKS), SLURM_LOCALID.
///
/// Slurm comes last because mpirun in a Slurm job inherits the batch script's SLURM_PROCID. Empty
/// if no variables are set, for the only task of a Slurm step, and for processes of a Slurm job
/// that srun did not start (batch script, shell of an allocation). Throws InputError, which names
/// the variable, for invalid numbers, and with the first two launchers also for a rank without a
/// size or a size without a rank.
std::optional<Launch> read_launch();

/// Index of this process's GPU among the `visible` ones, as CUDA numbers them: the local rank, or 0
/// if there is only one. A launcher may thus show each process one GPU (srun --gpus-per-task=1,
/// CUDA_VISIBLE_DEVICES), and ranks may share a machine's only GPU. 0 without a launcher. Throws
/// InputError if there is no GPU, or none for this local rank.
int choose_gpu(const std::optional<Launch>& launch, int visible);

/// True if the environment variable NO_COLOR is set and not empty.
bool no_color();

/// Cache folder: HIPRESS_CACHE, else hipress in XDG_CACHE_HOME, else .cache/hipress in HOME. Throws
/// InputError if none of the three is set.
std::string cache_folder();

/// HIPRESS_DATA: folder with models/ and profiler/. Needed by tools that run outside their
/// installation, such as those of the bundle, which has its own dynamic loader. Empty if unset.
std::string data_folder();

/// C++ compiler for algorithms compiled at run time: CXX, possibly of several words ("ccache g++"),
/// else "c++".
std::string cxx_compiler();

/// CUDA toolkits from CUDA_HOME and CUDA_PATH, whose lib64 and lib are searched for NVRTC first.
std::vector<std::string> cuda_toolkits();

/// Path of NCCL's library: HIPRESS_NCCL. Empty: the dynamic loader searches.
std::string nccl_path();

/// HIPRESS_REDIS_PASSWORD: password of the Redis where ranks meet, if its URL has none. Unlike the
/// environment, command lines are visible to other users.
std::string redis_password();

/// HIPRESS_REDIS_CA: PEM file of the certificate authorities to accept for a Redis over TLS
/// (rediss://). Empty: the system's.
std::string redis_authorities();

/// Sets NCCL_SOCKET_IFNAME, which NCCL reads at its first use, unless the user has set it. Call it
/// while the process has one thread.
void set_nccl_interface(const std::string& interface);

}  // namespace hipress::io
