// Training with compressed gradients: what error feedback is for, and that it does it.

#include "tests/training/training.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace hipress::training {
namespace {

// Stochastic gradient descent on f(x) = |x - x*|² / 2 in two dimensions, in the spirit of the
// counterexamples of Karimireddy et al., "Error Feedback Fixes SignSGD", 2019, made for onebit.
//
// With d = x - x*, a stochastic gradient is d + n, n one of four equally likely draws that add up
// to 0:
//   (4, 1), (-3, 1.5), (-3, 1.5), (2, -4).
// onebit sends the mean of the entries of each sign. As long as |d1| < 1 and |d2| < 1, draws 2 to 4
// make gradients with one entry of each sign, which pass unchanged; draw 1 makes two positive
// entries, of which both become m = (5 + d1 + d2) / 2. The expected update without feedback is
// therefore
//   E1 = (m + (d1 - 3) + (d1 - 3) + (d1 + 2)) / 4 = (m + 3 d1 - 4) / 4
//   E2 = (m + 3 d2 - 1) / 4,
// which vanish together only where d1 - d2 = 1 (the difference) and, adding, 4 (d1 + d2) = 0: at
// d = (1/2, -1/2), at distance 1 / sqrt(2) = 0.707 from the optimum, whatever the rate. The
// expected update is linear there with a positive definite matrix (3/4 and 1 on its two axes), so
// every small rate leads to that point: compressing like this converges to the wrong place.
//
// With feedback x differs from uncompressed descent's by rate · residual only, so it ends as near
// to the optimum as that does.
TEST_CASE("sign compression fails on a quadratic without error feedback, and converges with it") {
  const int steps = 4000;
  const auto after = [&](const Compression& compression) {
    return descend_quadratic(compression, steps).back();
  };
  CHECK(after({"onebit", false}) == Approx(0.7071).margin(0.05));
  // A step moves by rate · |gradient| <= 0.005 · 5; a few of them is as near as descent gets.
  CHECK(after({"none", false}) < 0.05);
  CHECK(after({"onebit", true}) < 0.05);
}

TEST_CASE("training with each algorithm comes near to training without compression") {
  // Margins of the loss on data that training has not seen, with the reason for each.
  const std::map<std::string, double> margins = {
      {"onebit", 0.005},    // error feedback sends everything, later
      {"tbq", 0.01},        // the same in lumps of 0.5
      {"terngrad", 0.005},  // unbiased, with the variance of two bits
      {"dgc", 0.03},        {"graddrop", 0.02},
      {"int8block", 0.002},  // unbiased, a scale per block
      {"int4block", 0.01},  {"fp8block", 0.003},
      {"fp4block", 0.01},    // off by a fifth, to both sides
      {"lossless", 0.0005},  // the same bits, added in another order
      {"fp16", 0.0005},      // a rounding
      {"bf16", 0.001},       // a coarser one
  };
  const Curve plain = train_classifier({});
  CHECK(plain.test_accuracy > 0.95);
  CHECK(plain.loss.back() < 0.08);
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (row.additive) continue;  // these compress matrices: see below
    INFO(row.name);
    const Curve curve = train_classifier({std::string(row.name), true});
    REQUIRE(margins.contains(std::string(row.name)));
    CHECK(curve.test_loss <= plain.test_loss + margins.at(std::string(row.name)));
    CHECK(curve.test_accuracy >= plain.test_accuracy - 0.02);
  }
}

TEST_CASE("without error feedback the same threshold sends nothing, and nothing is learned") {
  // No entry of the averaged gradient reaches 0.5 for long: the residuals are what carries it
  // there.
  const Curve with = train_classifier({"tbq", true}), without = train_classifier({"tbq", false});
  CHECK(without.loss.back() > 2 * with.loss.back());
}

TEST_CASE(
    "a network whose matrix is compressed to rank 2 with error feedback comes near to the same "
    "without",
    "[slow]") {
  const Curve plain = train_network("none");
  CHECK(plain.test_accuracy > 0.95);
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (!row.additive) continue;
    const std::string name(row.name);
    CAPTURE(name);
    const Curve curve = train_network(name + "(rank=2,ef=2)");
    // Rank 2 of 16: what a step leaves out comes in the next ones.
    CHECK(curve.test_loss <= plain.test_loss + 0.005);
    CHECK(curve.loss.back() <= plain.loss.back() + 0.005);
    CHECK(curve.test_accuracy >= plain.test_accuracy - 0.02);
  }
}

}  // namespace
}  // namespace hipress::training
