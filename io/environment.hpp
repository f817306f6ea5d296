#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hipress::io {

// environment.cpp is the only file that reads or sets environment variables.

/// Identity of this process in a launched job.
struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  std::string launcher;  ///< "torchrun", "slurm", "openmpi"
};

/// Identity from the first launcher whose variables are set, in this order:
///
/// - torchrun and plain: RANK, WORLD_SIZE, LOCAL_RANK;
/// - Open MPI: OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK;
/// - Slurm: SLURM_PROCID, SLURM_STEP_NUM_TASKS (without SLURM_JOB_ID: SLURM_NTASKS), SLURM_LOCALID.
///
/// Slurm comes last because mpirun in a Slurm job inherits the batch script's SLURM_PROCID. Empty
/// if no variables are set, in a single Slurm task, and in processes of a Slurm job that srun did
/// not start (batch script, shell of an allocation). Throws InputError, which names the variable,
/// for a rank without a size or a size without a rank (first two launchers), and for invalid
/// numbers.
std::optional<Launch> read_launch();

/// Index of this process's GPU among the `visible` ones, as CUDA numbers them: the local rank, or 0
/// if there is only one. A launcher may thus show each process one GPU (srun --gpus-per-task=1,
/// CUDA_VISIBLE_DEVICES), and ranks may share a machine's only GPU. 0 without a launcher. Throws
/// InputError if there is no GPU, or none for this local rank.
int choose_gpu(const std::optional<Launch>& launch, int visible);

/// True if NO_COLOR is set and not empty.
bool no_color();

/// Cache folder: HIPRESS_CACHE, else hipress in XDG_CACHE_HOME, else .cache/hipress in HOME. Throws
/// InputError if none of the three is set.
std::string cache_folder();

/// HIPRESS_DATA: folder with models/ and profiler/, for tools that run outside their installation,
/// such as the bundle's under its own dynamic loader. Empty if unset.
std::string data_folder();

/// C++ compiler for algorithms compiled at run time: CXX, possibly of several words ("ccache g++"),
/// else "c++".
std::string cxx_compiler();

/// CUDA toolkits from CUDA_HOME and CUDA_PATH. NVRTC is searched in their lib64 and lib first.
std::vector<std::string> cuda_toolkits();

/// Path of NCCL's library: HIPRESS_NCCL. Empty: the dynamic loader searches.
std::string nccl_path();

/// HIPRESS_REDIS_PASSWORD: password of the rendezvous Redis if its URL has none. Command lines are
/// visible to other users; the environment is not.
std::string redis_password();

/// HIPRESS_REDIS_CA: PEM file of the certificate authorities accepted for a Redis over TLS
/// (rediss://); empty: the system's.
std::string redis_authorities();

/// Sets NCCL_SOCKET_IFNAME unless the user has set it. NCCL reads it at its first use. Call it
/// while the process has one thread.
void set_nccl_interface(const std::string& interface);

}  // namespace hipress::io
