// Tests that the low-rank operators for GPUs, run on the CPU, give the host's bits.

#include <limits>

#include "tests/kernels/lowrank_device.hpp"

namespace hipress::kernels {
namespace {

using testing::StagedPair;

/// Shapes around the boundaries of tiles (1024 columns, 128 rows), groups of 8 rows, and 16 lanes.
const std::vector<std::vector<std::int64_t>> kShapes = {{13, 37},  {1, 50},   {50, 1}, {139, 17},
                                                        {9, 5, 7}, {6, 1030}, {0, 4},  {1100, 5}};

void schedule(std::uint32_t seed) { emulation::Grid::instance().set_schedule(seed); }

TEST_CASE("emulated low rank gives the host's bits, whatever the order of threads", "[slow]") {
  for (const char* algorithm : {"powersgd(rank=5)", "powersgd(rank=3,ef=2)", "powersgd(ef=0)",
                                "acpsgd(rank=4)", "rsketch(rank=6)", "rsketch(rank=2,ef=0)"}) {
    for (const std::uint32_t seed : {0u, 1u, 2u}) {
      INFO(algorithm << ", schedule " << seed);
      schedule(seed);
      StagedPair pair(algorithm, kShapes, ValueType::kFloat32);
      for (std::uint32_t step = 0; step < 2; ++step) pair.step(step, 1);
    }
  }
  schedule(0);
}

TEST_CASE("emulated low rank gives the host's bits for what is zero, huge or not a number",
          "[slow]") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* algorithm : {"powersgd(rank=3)", "acpsgd(rank=3,ef=2)", "rsketch(rank=3)"}) {
    INFO(algorithm);
    StagedPair pair(algorithm, kShapes, ValueType::kFloat32);
    pair.step(1, 1e38f);
    pair.step(2, 0);
    pair.step(3, 1, kNan);
    pair.step(4, 1, std::numeric_limits<float>::infinity());
    pair.step(5, 1e-40f);
  }
}

TEST_CASE("emulated low rank gives the host's bits for more gradients than a launch takes",
          "[slow]") {
  for (const char* algorithm : {"powersgd(rank=17)", "acpsgd"}) {
    StagedPair pair(algorithm, std::vector<std::vector<std::int64_t>>(70, {19, 18}),
                    ValueType::kFloat32);
    for (std::uint32_t step = 0; step < 2; ++step) pair.step(step, 1);
  }
}

TEST_CASE("emulated low rank gives the host's bits for half precision") {
  for (const ValueType type : {ValueType::kFloat16, ValueType::kBfloat16}) {
    for (const char* algorithm : {"powersgd", "acpsgd(ef=0)"}) {
      INFO(algorithm);
      StagedPair pair(algorithm, kShapes, type);
      for (std::uint32_t step = 0; step < 2; ++step) pair.step(step, 1);
    }
  }
}

}  // namespace
}  // namespace hipress::kernels
