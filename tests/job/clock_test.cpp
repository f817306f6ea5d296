#include "job/clock.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <mutex>

#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::job;
using runtime::message_of;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// Clock of a simulated machine, which is ahead of this machine's clock.
MachineClock machine_ahead(int rank, nanoseconds ahead) {
  return {.boot = "boot " + std::to_string(rank), .now = [ahead] { return Clock::now() + ahead; }};
}

/// Time by which a rank's clock is ahead of rank 0's.
nanoseconds ahead_of_zero(int rank) { return rank * 1234567890ns; }

}  // namespace

TEST_CASE("ranks of one machine share its clock") {
  const auto errors = runtime::run_ranks(3, [](transport::Endpoint& endpoint) {
    const CommonClock clock(endpoint);
    if (clock.offset() != 0ns) throw std::runtime_error("an offset was estimated");
  });
  for (const auto& error : errors) CHECK(message_of(error) == "no error");
}

TEST_CASE("between machines the offset to rank 0 is estimated") {
  std::mutex mutex;
  std::vector<nanoseconds> offsets(3);
  const auto errors = runtime::run_ranks(3, [&](transport::Endpoint& endpoint) {
    const int rank = endpoint.rank();
    const CommonClock clock(endpoint, machine_ahead(rank, ahead_of_zero(rank)));
    const std::lock_guard lock(mutex);
    offsets[static_cast<std::size_t>(rank)] = clock.offset();
  });
  for (const auto& error : errors) REQUIRE(message_of(error) == "no error");
  for (int rank = 0; rank < 3; ++rank) {
    // The offset of a clock that is ahead is negative. Its error is half of the difference between
    // the fastest crossings of the two directions. Here that is a scheduler's delay of 1 or 2 ms.
    const nanoseconds error = offsets[static_cast<std::size_t>(rank)] + ahead_of_zero(rank);
    CHECK(std::abs(error.count()) < 10'000'000);
  }
}

TEST_CASE("all ranks agree on one start, which lies ahead") {
  std::mutex mutex;
  std::vector<std::vector<Clock::time_point>> starts(3);
  const auto errors = runtime::run_ranks(3, [&](transport::Endpoint& endpoint) {
    const int rank = endpoint.rank();
    CommonClock clock(endpoint, machine_ahead(rank, ahead_of_zero(rank)));
    for (int i = 0; i < 3; ++i) {
      const Clock::time_point before = Clock::now() + ahead_of_zero(rank);
      const Clock::time_point start = clock.agree_on_start();
      if (start < before) throw std::runtime_error("the start lies in the past");
      const std::lock_guard lock(mutex);
      starts[static_cast<std::size_t>(rank)].push_back(start + clock.offset());
    }
  });
  for (const auto& error : errors) REQUIRE(message_of(error) == "no error");
  // On rank 0's clock the instants are the same, to the nanosecond: offsets cancel.
  CHECK(starts[1] == starts[0]);
  CHECK(starts[2] == starts[0]);
}
