#include <catch2/catch.hpp>

#include "sim/message_sizes.hpp"

namespace hipress::sim {
namespace {

std::int64_t bound(std::int64_t elements) { return 16 + 4 * elements; }

TEST_CASE("a message is predicted as the profile's share of its bound, in multiples of 4") {
  costs::Profile profile;
  profile.codecs["lossless"].message_share = 0.84;
  profile.codecs["fp16"] = {};
  // 0.84 · 416 = 349.44, and up to 352.
  CHECK(predicted_bytes(profile, "lossless", bound)(100) == 352);
  CHECK(predicted_bytes(profile, "fp16", bound)(100) == 416);
  CHECK(predicted_bytes(profile, "onebit", bound)(100) == 416);  // of which the profile has no row
}

TEST_CASE("predicted messages grow with the slice, and are no longer than the bound") {
  costs::Profile profile;
  profile.codecs["lossless"].message_share = 0.333;
  const MessageBytes bytes = predicted_bytes(profile, "lossless", bound);
  for (std::int64_t elements = 1; elements < 3000; ++elements) {
    CHECK(bytes(elements) >= bytes(elements - 1));
    CHECK(bytes(elements) <= bound(elements));
  }
}

}  // namespace
}  // namespace hipress::sim
