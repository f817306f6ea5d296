#include "io/processors.hpp"

#include <pthread.h>
#include <sched.h>

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace hipress::io {
namespace {

TEST_CASE("cores that a thread may not run on are not usable") {
  const std::vector<int> all = usable_cores();
  REQUIRE_FALSE(all.empty());
  std::vector<int> bound;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(all.back(), &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0) bound = usable_cores();
  }).join();
  CHECK(bound == std::vector<int>{all.back()});
  CHECK(usable_cores() == all);
}

}  // namespace
}  // namespace hipress::io
