#include "replay/pairs.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace hipress::replay;

TEST_CASE("pairs of blocks: a plan is faster if the interval of its speedups lies above 1") {
  CHECK(judge({}).verdict == Verdict::kOpen);
  const std::vector<double> one = {2.0};
  CHECK(judge(one).verdict == Verdict::kOpen);  // one pair has no interval
  CHECK(judge(one).mean == 2.0);
  CHECK_FALSE(judge(one).high);

  // The logarithms are ±0.1 around ln 2. With 1 degree of freedom t is 12.71, and the standard
  // deviation is 0.1·√2, so the half width is 12.71·0.1·√2/√2 = 1.271 > ln 2: undecided.
  const std::vector<double> two = {2 * 1.105170918, 2 / 1.105170918};
  CHECK(judge(two).verdict == Verdict::kOpen);
  CHECK(judge(two).mean == Approx(2.0));
  CHECK(*judge(two).low == Approx(2.0 / 3.5644).epsilon(1e-3));  // e^1.271 = 3.564
  CHECK(*judge(two).high == Approx(2.0 * 3.5644).epsilon(1e-3));

  // ±0.01: the half width is 0.1271, e^0.1271 = 1.1355.
  const std::vector<double> close = {2 * 1.010050167, 2 / 1.010050167};
  CHECK(judge(close).verdict == Verdict::kFaster);
  CHECK(*judge(close).low == Approx(2.0 / 1.1355).epsilon(1e-3));
}

TEST_CASE(
    "pairs of blocks: a plan is not faster if it is slower, hopeless, or undecided at the end") {
  CHECK(judge(std::vector<double>{0.9}).verdict == Verdict::kOpen);
  CHECK(judge(std::vector<double>{0.7}).verdict == Verdict::kNotFaster);  // below 1/1.3
  // The interval contains 1, but the mean is √0.54 = 0.73 < 1/1.3.
  CHECK(*judge(std::vector<double>{0.6, 0.9}).high > 1);
  CHECK(judge(std::vector<double>{0.6, 0.9}).verdict == Verdict::kNotFaster);
  CHECK(judge(std::vector<double>{0.8, 0.8}).verdict == Verdict::kNotFaster);
  // Equal speedups have the least spread, 0.003: with two of them the half width is
  // 12.71·0.003/√2 = 0.027, more than a gain of 1 %.
  CHECK(judge(std::vector<double>{1.01, 1.01}).verdict == Verdict::kOpen);
  std::vector<double> undecided;
  while (undecided.size() < kMostPairs) {
    if (!undecided.empty()) CHECK(judge(undecided).verdict == Verdict::kOpen);
    undecided.push_back(undecided.size() % 2 == 0 ? 1.1 : 0.95);
  }
  CHECK(judge(undecided).verdict == Verdict::kNotFaster);
}

TEST_CASE("pairs of blocks: a gain below the least that is worth a plan does not count") {
  // A gain of 0.3 % in 8 pairs: half width 2.36·0.003/√8 = 0.0025 < 0.003, but 0.3 % < 0.5 %.
  CHECK(judge(std::vector<double>(8, 1.003)).verdict == Verdict::kNotFaster);
  CHECK(judge(std::vector<double>(8, 1.006)).verdict == Verdict::kFaster);
}
