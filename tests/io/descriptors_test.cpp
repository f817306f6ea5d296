#include "io/descriptors.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>

namespace hipress::io {
namespace {

rlimit limit() {
  rlimit now{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &now) == 0);
  return now;
}

/// Sets the soft limit for the lifetime of the object.
class SoftLimit {
 public:
  explicit SoftLimit(rlim_t descriptors) {
    rlimit lower = before_;
    lower.rlim_cur = descriptors;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~SoftLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;

 private:
  rlimit before_ = limit();
};

TEST_CASE("the soft limit of descriptors is raised as far as what is wanted takes") {
  const SoftLimit low(100);
  CHECK(allow_descriptors(0) >= 0);
  CHECK(limit().rlim_cur == 100);
  CHECK(allow_descriptors(150) == 150);
  CHECK(limit().rlim_cur > 150);
  const rlim_t raised = limit().rlim_cur;
  CHECK(allow_descriptors(100) >= 150);  // the limit is high enough
  CHECK(limit().rlim_cur == raised);
}

TEST_CASE("the hard limit of descriptors stays, and what it allows is told") {
  const SoftLimit low(100);
  const rlim_t hard = limit().rlim_max;
  if (hard > (rlim_t{1} << 40)) return;  // unlimited
  const auto wanted = static_cast<std::int64_t>(hard) + 1;
  const std::int64_t allowed = allow_descriptors(wanted);
  CHECK(allowed < wanted);
  CHECK(allowed > 0);
  CHECK(limit().rlim_max == hard);
}

}  // namespace
}  // namespace hipress::io
