#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>

namespace hipress::tests {

/// True if CUDA shows any GPUs to this process (`gpus`: how many), so that a test which needs one
/// can run. Otherwise the test says so and passes, unless HIPRESS_REQUIRE_GPU is set.
/// scripts/gpu_check.sh sets it: with a driver that CUDA cannot use, every test would pass there.
inline bool has_gpu(int gpus) {
  if (gpus > 0) return true;
  const char* const required = std::getenv("HIPRESS_REQUIRE_GPU");
  if (required != nullptr && *required != '\0') {
    FAIL(
        "HIPRESS_REQUIRE_GPU is set, but CUDA shows no GPU: is the driver too old for this build, "
        "or CUDA_VISIBLE_DEVICES empty?");
  }
  WARN("skipped: no GPU on this machine");
  return false;
}

}  // namespace hipress::tests
