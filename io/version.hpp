#pragma once

#include <string>

namespace hipress::io {

/// Release, such as "0.2.0". All ranks of a job must have the same release.
std::string release();

/// Release and build, for --version and provenance: "0.2.0 (git 1a2b3c4d5e, CUDA 13.0, NCCL
/// 2.27.7)".
std::string version();

}  // namespace hipress::io
