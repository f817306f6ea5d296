// Tests that a process that replays many times keeps neither memory nor descriptors.

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "replay/replay.hpp"
#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;

namespace {

constexpr int kReplays = 10'000;
/// Number of replays until the allocator has its arenas, and threads have their stacks.
constexpr int kWarmup = 1'000;
/// Tolerated growth of memory in the other 9000 replays: less than 256 bytes per replay.
constexpr std::int64_t kTolerance_bytes = 2 << 20;

/// Resources that a process holds.
struct Holdings {
  std::int64_t resident_bytes = 0;
  std::ptrdiff_t descriptors = 0;

  static Holdings now() {
    std::ifstream statm("/proc/self/statm");
    std::int64_t pages = 0, resident_pages = 0;
    statm >> pages >> resident_pages;
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return {resident_pages * ::sysconf(_SC_PAGESIZE),
            std::distance(open, std::filesystem::directory_iterator())};
  }
};

void require_flat(const Holdings& before, const Holdings& after) {
  const std::int64_t grown = after.resident_bytes - before.resident_bytes;
  WARN(fmt::format("after {} and {}: {} and {} bytes resident ({:+} bytes), {} and {} descriptors",
                   kWarmup, kReplays, before.resident_bytes, after.resident_bytes, grown,
                   before.descriptors, after.descriptors));
  CHECK(grown <= kTolerance_bytes);
  CHECK(after.descriptors == before.descriptors);
}

}  // namespace

TEST_CASE("10000 replays in one process leave memory and descriptors as they were", "[long]") {
  const std::string transport = GENERATE(as<std::string>(), "tcp", "gloo", "memory");
  CAPTURE(transport);
  const Case made = make_case("ring", 2, 2, "onebit", {1000, 33, 5000});
  Holdings before;
  for (int i = 0; i < kReplays; ++i) {
    if (i == kWarmup) before = Holdings::now();
    const ReplayResult result = replay_threads(transport, made.model, made.plan, made.graph,
                                               {.warmup = 0, .iterations = 1, .progress = {}});
    REQUIRE(result.verified);
  }
  require_flat(before, Holdings::now());
}

TEST_CASE("10000 iterations of one replay leave memory and descriptors as they were", "[long]") {
  const Case made = make_case("ring", 2, 2, "onebit", {1000, 33, 5000});
  Holdings before, after;
  std::atomic<int> calls = 0;
  const auto progress = [&](int, int iteration) {
    if (iteration != kWarmup && iteration != kReplays - 1) return;
    // Measure when the second of the two ranks begins.
    if (++calls % 2 == 0) (iteration == kWarmup ? before : after) = Holdings::now();
  };
  const ReplayResult result =
      replay_threads("tcp", made.model, made.plan, made.graph,
                     {.warmup = 0, .iterations = kReplays, .progress = progress});
  CHECK(result.verified);
  require_flat(before, after);
}
