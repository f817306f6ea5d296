// Tests that the CUDA kernels of runtime/, run on the CPU, give the host's results up to rounding.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "runtime/computation.hpp"
#include "runtime/cuda_computation.hpp"
#include "tests/kernels/device_memory.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::runtime {
namespace {

using kernels::testing::gaussian;

TEST_CASE("emulated computation of every class is the host's") {
  constexpr std::int64_t kRows = 128, kBytes = kRows * kRows * 4;
  const std::vector<float> a = gaussian(kRows * kRows, 1), b = gaussian(kRows * kRows, 2);
  float* on_gpu[3] = {};
  for (float*& matrix : on_gpu) REQUIRE(cudaMalloc(&matrix, kBytes) == cudaSuccess);
  cudaMemcpy(on_gpu[0], a.data(), kBytes, cudaMemcpyHostToDevice);
  cudaMemcpy(on_gpu[1], b.data(), kBytes, cudaMemcpyHostToDevice);
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    for (std::uint32_t schedule = 0; schedule < 4; ++schedule) {
      CAPTURE(models::kComputeClassTable[i].name, schedule);
      kernels::emulation::Grid::instance().set_schedule(schedule);
      const auto what = static_cast<models::ComputeClass>(i);
      std::vector<float> expected(a.size()), found(a.size());
      compute_on_host(what, a.data(), b.data(), expected.data(), kRows);
      cudaMemset(on_gpu[2], 0, kBytes);
      REQUIRE(compute_on_gpu(what, on_gpu[0], on_gpu[1], on_gpu[2], kRows, nullptr) == cudaSuccess);
      cudaMemcpy(found.data(), on_gpu[2], kBytes, cudaMemcpyDeviceToHost);
      float most = 0, wrong = 0;
      for (std::size_t at = 0; at < expected.size(); ++at) {
        most = std::max(most, std::abs(expected[at]));
        wrong = std::max(wrong, std::abs(expected[at] - found[at]));
      }
      REQUIRE(most > 0);
      // Sums of 128 terms in fp32: each addition errs by at most 2^-24 of the sum, all by 8e-6.
      CHECK(wrong <= 1e-5F * most);
    }
  }
  for (float* const matrix : on_gpu) cudaFree(matrix);
}

TEST_CASE("emulated computation refuses matrices that are no multiple of its tiles") {
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    const auto what = static_cast<models::ComputeClass>(i);
    CHECK(compute_on_gpu(what, nullptr, nullptr, nullptr, 96, nullptr) == cudaErrorInvalidValue);
    CHECK(compute_on_gpu(what, nullptr, nullptr, nullptr, 0, nullptr) == cudaErrorInvalidValue);
  }
}

}  // namespace
}  // namespace hipress::runtime
