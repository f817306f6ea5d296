#pragma once

#include <string>

namespace hipress::io {

/// "0.1.0": ranks of one job must be of one release.
std::string release();

/// "0.1.0 (git 1a2b3c4, CUDA 13.0, NCCL 2.27.7)": for --version and for provenance in files.
std::string version();

}  // namespace hipress::io
