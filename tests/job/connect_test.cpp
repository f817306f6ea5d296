#include "job/connect.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "io/error.hpp"

using namespace hipress;
using Catch::Matchers::Contains;

namespace {

/// Restores the limits on open files at the end of the scope.
class KeptLimit {
 public:
  KeptLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~KeptLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  KeptLimit(const KeptLimit&) = delete;
  KeptLimit& operator=(const KeptLimit&) = delete;

  void allow(rlim_t soft) const {
    const rlimit limit{soft, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  static rlim_t allowed() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }

 private:
  rlimit before_{};
};

transport::JobOptions alone_of(int ranks) {
  return {.rank = 1,
          .size = ranks,
          .job = "test-connect",
          .plan = {},
          .rendezvous = "local:test-connect",
          .interface = {},
          .timeout_s = 0.1};
}

}  // namespace

TEST_CASE("a rank that connects raises its limit on open files as far as it needs") {
  const KeptLimit limit;
  limit.allow(64);
  // No other rank comes, which is noticed only after the limit has been raised.
  CHECK_THROWS_AS(job::connect_rank("tcp", alone_of(100), 1), transport::PeerError);
  CHECK(KeptLimit::allowed() > 100);
}

TEST_CASE("a rank that may not have its connections says so before it connects") {
  CHECK_THROWS_WITH(job::connect_rank("tcp", alone_of(1 << 28), 0),
                    Contains("rank 1 needs") && Contains("open files") && Contains("ulimit -n"));
}
