#include "runtime/links.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "job/connect.hpp"

using namespace hipress;

TEST_CASE("links are measured alike on every rank") {
  for (const int ranks : {2, 3}) {
    std::vector<runtime::Links> found(static_cast<std::size_t>(ranks));
    job::run_thread_ranks("tcp", ranks, 30, [&](transport::Endpoint& endpoint) {
      found[static_cast<std::size_t>(endpoint.rank())] = runtime::measure_links(endpoint, 30);
      endpoint.all_gather("the endpoint serves on");
    });
    for (const runtime::Links& one : found) {
      CHECK(one.bandwidth == found.front().bandwidth);
      CHECK(one.latency_s == found.front().latency_s);
    }
    // Loopback is faster than a slow emulator (1 MB/s), and slower than the fastest memory (1
    // TB/s). A message through the kernel takes more than a microsecond, and less than a second.
    CHECK(found.front().bandwidth > 1e6);
    CHECK(found.front().bandwidth < 1e12);
    CHECK(found.front().latency_s > 1e-6);
    CHECK(found.front().latency_s < 1);
  }
}

TEST_CASE("one rank alone has no links") {
  job::run_thread_ranks("tcp", 1, 30, [&](transport::Endpoint& endpoint) {
    CHECK_THROWS_AS(runtime::measure_links(endpoint, 30), std::invalid_argument);
  });
}
