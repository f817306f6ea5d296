#include "io/version.hpp"

#include <fmt/format.h>

#include "git_hash.hpp"  // made by the build

namespace hipress::io {

std::string release() { return HIPRESS_VERSION; }

std::string version() {
  return fmt::format("{} (git {}, CUDA {}, NCCL {})", HIPRESS_VERSION, HIPRESS_GIT_HASH,
                     HIPRESS_CUDA_VERSION, HIPRESS_NCCL_VERSION);
}

}  // namespace hipress::io
