#include "replay/run_sample.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace hipress::replay;

namespace {

/// Makes a record that identifies its iteration by its end time.
RecordedRun record_of(std::size_t iteration) {
  const std::chrono::nanoseconds end(iteration);
  return {.tasks = {{std::chrono::nanoseconds(0), end}}};
}

/// Iteration that stands for the median of `times` if `most` records are kept.
std::size_t found(const std::vector<double>& times, std::size_t most) {
  RunSample sample(most);
  for (std::size_t i = 0; i < times.size(); ++i) sample.add(record_of(i));
  return static_cast<std::size_t>(sample.nearest_to_median(times).tasks.at(0).end.count());
}

}  // namespace

TEST_CASE("where all iterations are kept, the median one is found") {
  CHECK(found({5}, 8) == 0);
  CHECK(found({5, 3}, 8) == 1);
  CHECK(found({5, 3, 4}, 8) == 2);
  CHECK(found({5, 3, 4, 1}, 8) == 1);
  CHECK(found({9, 2, 7, 1, 8}, 5) == 2);
}

TEST_CASE("where few are kept, one near the median is found, also if times drift") {
  // The times are 0 … 9999 in some order. The probability that none of 200 random ones lies within
  // 400 places of the median is (1 - 0.08)^200 = 6e-8.
  std::vector<double> rising, falling, alternating;
  for (int i = 0; i < 10000; ++i) {
    rising.push_back(i);
    falling.push_back(9999 - i);
    alternating.push_back(i % 2 == 0 ? i : 9999 - i);
  }
  for (const std::vector<double>& times : {rising, falling, alternating}) {
    CHECK(std::fabs(times[found(times, 200)] - 4999) < 400);
  }
}

TEST_CASE("one is kept at least") { CHECK(found({5, 3, 4}, 0) < 3); }
