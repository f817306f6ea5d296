#include "costs/traffic.hpp"

#include <catch2/catch.hpp>

namespace hipress::costs {
namespace {

TEST_CASE("the share of a bandwidth is the least traffic over what could be moved meanwhile") {
  // At 2e12 bytes/s, 12.125 bytes for each of 2^26 elements take 407 µs. Work that takes twice as
  // long, and 1 µs for its launch, uses a little less than half of the bandwidth.
  const double least_s = 12.125 * (1 << 26) / 2e12;
  const Curve work{.pieces = {{.a_s = 1e-6, .b_s = 2 * least_s / (1 << 26)}}};
  REQUIRE(least_traffic("onebit"));
  const double share = share_of_bandwidth(work, least_traffic("onebit")->encode, 2e12);
  CHECK(share == Approx(least_s / (1e-6 + 2 * least_s)));
  CHECK(share == Approx(0.4994).epsilon(1e-4));
  CHECK_FALSE(least_traffic("a user's program"));
}

}  // namespace
}  // namespace hipress::costs
