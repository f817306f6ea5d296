#pragma once

#include <string>

namespace hipress::io {

/// Release, "0.2.0". Ranks of one job must have the same.
std::string release();

/// Version with its parts, for --version and provenance: "0.2.0 (git 1a2b3c4d5e, CUDA 13.0, NCCL
/// 2.27.7)".
std::string version();

}  // namespace hipress::io
