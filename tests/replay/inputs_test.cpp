#include "replay/inputs.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "replay/digest.hpp"

using namespace hipress::replay;

namespace {

std::vector<float> inputs(const InputKey& key, std::int64_t first, std::size_t count) {
  std::vector<float> values(count);
  fill_inputs(key, first, values);
  return values;
}

constexpr InputKey kKey{.seed = 1, .iteration = 2, .node = 3, .gradient = 4};

}  // namespace

TEST_CASE("inputs are uniform from -1 to below 1") {
  // 1e6 draws: the mean's standard deviation is sqrt(1/3)/1000 = 5.8e-4, the mean square's is
  // sqrt(4/45)/1000 = 3e-4 around 1/3. Deviations of five standard deviations are allowed.
  constexpr std::size_t kCount = 1000000;
  double sum = 0, squares = 0;
  for (const float x : inputs(kKey, 0, kCount)) {
    REQUIRE((x >= -1 && x < 1));
    sum += x;
    squares += double{x} * x;
  }
  CHECK(std::fabs(sum / kCount) < 5 * 5.8e-4);
  CHECK(std::fabs(squares / kCount - 1.0 / 3) < 5 * 3e-4);
}

TEST_CASE("an input depends on key and element alone, not on the stretch that is filled") {
  const std::vector<float> whole = inputs(kKey, 0, 1000);
  const std::vector<float> part = inputs(kKey, 317, 100);
  CHECK(std::vector<float>(whole.begin() + 317, whole.begin() + 417) == part);
}

TEST_CASE("elements beyond 2^32 are drawn anew") {
  constexpr std::int64_t kBlock = std::int64_t{1} << 32;
  const std::vector<float> across = inputs(kKey, kBlock - 50, 100);
  CHECK(std::vector<float>(across.begin() + 50, across.end()) == inputs(kKey, kBlock, 50));
  CHECK(inputs(kKey, kBlock, 50) != inputs(kKey, 0, 50));
}

TEST_CASE("every part of the key matters") {
  std::set<std::vector<float>> distinct{inputs(kKey, 0, 8)};
  for (InputKey key :
       {InputKey{2, 2, 3, 4}, InputKey{1, 3, 3, 4}, InputKey{1, 2, 4, 4}, InputKey{1, 2, 3, 5}}) {
    distinct.insert(inputs(key, 0, 8));
  }
  CHECK(distinct.size() == 5);
}

TEST_CASE("a digest notices one wrong bit anywhere, and what stands where") {
  // 37 values are two stripes of 16 and a tail.
  std::vector<float> values = inputs(kKey, 0, 37);
  const std::uint64_t before = digest(values);
  for (float& value : values) {
    const float right = value;
    value = std::nextafter(value, 2.0f);
    CHECK(digest(values) != before);
    value = right;
  }
  std::swap(values[0], values[16]);
  CHECK(digest(values) != before);
}

TEST_CASE("a digest tells lengths apart") {
  CHECK(digest(std::vector<float>(3)) != digest(std::vector<float>(4)));
  CHECK(digest({}) != digest(std::vector<float>(1)));
}

TEST_CASE("a digest of stretches is that of the whole") {
  const std::vector<float> values = inputs(kKey, 0, 1000);
  Digest stretches;
  stretches.update(std::span(values).first(Digest::kStripe * 7));
  stretches.update(std::span(values).subspan(Digest::kStripe * 7));
  CHECK(stretches.value() == digest(values));
}
