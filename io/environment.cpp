#include "io/environment.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::io {
namespace {

constexpr int kMaxRanks = 1 << 20;

/// Variables that identify a process under one launcher.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
};

// Searched in this order, before Slurm: processes that torchrun or mpirun start in a Slurm
// allocation also see Slurm's variables, which then describe the batch script.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
};

/// Value of the variable; empty if unset.
std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

int parse_rank(const char* variable, const char* text, int least, int most) {
  return static_cast<int>(
      parse_integer(text, fmt::format("environment variable {}", variable), least, most));
}

std::optional<Launch> read(const Launcher& launcher) {
  const char* rank = std::getenv(launcher.rank);
  const char* size = std::getenv(launcher.size);
  if (!rank && !size) return std::nullopt;
  if (!rank || !size) {
    throw InputError(fmt::format("environment variable {} is set but {} is not; set or unset both",
                                 rank ? launcher.rank : launcher.size,
                                 rank ? launcher.size : launcher.rank));
  }
  Launch launch;
  launch.launcher = launcher.name;
  launch.size = parse_rank(launcher.size, size, 1, kMaxRanks);
  launch.rank = parse_rank(launcher.rank, rank, 0, launch.size - 1);
  if (const char* local_rank = std::getenv(launcher.local_rank)) {
    launch.local_rank = parse_rank(launcher.local_rank, local_rank, 0, launch.size - 1);
  }
  return launch;
}

/// Identity in a job step that srun started. A batch script also has a SLURM_PROCID (0) and, if it
/// was submitted with --ntasks, a SLURM_NTASKS; only steps have SLURM_STEP_NUM_TASKS. In an
/// interactive step, SLURM_NTASKS may be the number of a larger allocation.
std::optional<Launch> read_slurm() {
  const bool in_step = std::getenv("SLURM_STEP_NUM_TASKS") != nullptr;
  if (!in_step && std::getenv("SLURM_JOB_ID")) return std::nullopt;
  const char* const size = in_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (!std::getenv("SLURM_PROCID") || !std::getenv(size)) return std::nullopt;
  const std::optional<Launch> launch = read({"slurm", "SLURM_PROCID", size, "SLURM_LOCALID"});
  return launch->size == 1 ? std::nullopt : launch;
}

}  // namespace

std::optional<Launch> read_launch() {
  for (const Launcher& launcher : kLaunchers) {
    if (const std::optional<Launch> launch = read(launcher)) return launch;
  }
  return read_slurm();
}

int choose_gpu(const std::optional<Launch>& launch, int visible) {
  if (visible < 1) {
    throw InputError(
        "CUDA shows this process no GPU; see that nvidia-smi lists one, and what "
        "CUDA_VISIBLE_DEVICES says");
  }
  const int local_rank = launch ? launch->local_rank : 0;
  if (visible == 1) return 0;
  if (local_rank < visible) return local_rank;
  throw InputError(
      fmt::format("local rank {} has no GPU of its own: CUDA shows {}; start at most {} ranks per "
                  "machine",
                  local_rank, visible, visible));
}

bool no_color() {
  const char* value = std::getenv("NO_COLOR");
  return value && *value;
}

std::string cache_folder() {
  if (const std::string own = text_of("HIPRESS_CACHE"); !own.empty()) return own;
  if (const std::string xdg = text_of("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/hipress";
  if (const std::string home = text_of("HOME"); !home.empty()) return home + "/.cache/hipress";
  throw InputError("no cache folder is known: set HIPRESS_CACHE, XDG_CACHE_HOME or HOME");
}

std::string data_folder() { return text_of("HIPRESS_DATA"); }

std::string cxx_compiler() {
  const char* value = std::getenv("CXX");
  return value && *value ? value : "c++";
}

std::vector<std::string> cuda_toolkits() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(variable);
    if (value && *value) folders.emplace_back(value);
  }
  return folders;
}

std::string nccl_path() {
  const char* value = std::getenv("HIPRESS_NCCL");
  return value ? value : "";
}

std::string redis_password() { return text_of("HIPRESS_REDIS_PASSWORD"); }

std::string redis_authorities() { return text_of("HIPRESS_REDIS_CA"); }

void set_nccl_interface(const std::string& interface) {
  constexpr int kKeep = 0;  // keep an existing value
  ::setenv("NCCL_SOCKET_IFNAME", interface.c_str(), kKeep);
}

}  // namespace hipress::io
