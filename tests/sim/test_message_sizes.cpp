#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/message_sizes.hpp"

namespace hipress::sim {
namespace {

std::int64_t bound(std::int64_t elements) { return 16 + 4 * elements; }

TEST_CASE("a message is predicted as the profile's share of its bound, in multiples of 4") {
  costs::Profile profile;
  profile.codecs["lossless"].message_share = 0.84;
  profile.codecs["fp16"] = {};
  std::vector<casync::Algorithm> algorithms;
  for (const char* name : {"lossless", "fp16", "onebit"}) {  // of the last the profile has no row
    algorithms.push_back({.name = name, .encoded_bytes = bound});
  }
  CHECK(predict_sizes(profile, algorithms));
  // 0.84 · 416 = 349.44, and up to 352.
  CHECK(algorithms[0].encoded_bytes(100) == 352);
  CHECK(algorithms[1].encoded_bytes(100) == 416);
  CHECK(algorithms[2].encoded_bytes(100) == 416);
  algorithms.erase(algorithms.begin());
  CHECK_FALSE(predict_sizes(profile, algorithms));
}

TEST_CASE("predicted messages grow with the slice, and are no longer than the bound") {
  costs::Profile profile;
  profile.codecs["lossless"].message_share = 0.333;
  std::vector<casync::Algorithm> algorithms = {{.name = "lossless", .encoded_bytes = bound}};
  predict_sizes(profile, algorithms);
  const auto& bytes = algorithms[0].encoded_bytes;
  for (std::int64_t elements = 1; elements < 3000; ++elements) {
    CHECK(bytes(elements) >= bytes(elements - 1));
    CHECK(bytes(elements) <= bound(elements));
  }
}

}  // namespace
}  // namespace hipress::sim
