// Tests that training with compressed gradients learns, and that this needs error feedback.

#include "tests/training/training.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace hipress::training {
namespace {

// Stochastic gradient descent on f(x) = |x - x*|² / 2 in two dimensions. The noise is made for
// onebit, like the counterexamples of Karimireddy et al., "Error Feedback Fixes SignSGD", 2019.
//
// With d = x - x*, a stochastic gradient is d + n, where n is one of four equally likely draws
// whose sum is 0:
//   (4, 1), (-3, 1.5), (-3, 1.5), (2, -4).
// onebit replaces the entries of each sign by their mean. While |d1| < 1 and |d2| < 1, draws 2 to 4
// make gradients with one entry of each sign, which pass unchanged. Draw 1 makes two positive
// entries, which both become m = (5 + d1 + d2) / 2. The expected update without feedback is
// therefore
//   E1 = (m + (d1 - 3) + (d1 - 3) + (d1 + 2)) / 4 = (m + 3 d1 - 4) / 4
//   E2 = (m + 3 d2 - 1) / 4.
// Both are 0 only if d1 - d2 = 1 (their difference) and 4 (d1 + d2) = 0 (their sum). This is the
// point d = (1/2, -1/2), at distance 1 / sqrt(2) = 0.707 from the optimum, whatever the rate. There
// the expected update is linear with a positive definite matrix (3/4 and 1 on its two axes), so
// every small rate leads to that point: without feedback, training converges to the wrong place.
//
// With feedback, x differs from that of uncompressed descent only by rate · residual, so it ends as
// near to the optimum.
TEST_CASE("sign compression fails on a quadratic without error feedback, and converges with it") {
  const int steps = 4000;
  const auto after = [&](const Compression& compression) {
    return descend_quadratic(compression, steps).back();
  };
  CHECK(after({"onebit", false}) == Approx(0.7071).margin(0.05));
  // A step moves x by at most 0.005 · 5. Descent ends within a few steps of the optimum.
  CHECK(after({"none", false}) < 0.05);
  CHECK(after({"onebit", true}) < 0.05);
}

TEST_CASE("training with each algorithm comes near to training without compression") {
  // Allowed increases of the loss on test data, with the reason for each.
  const std::map<std::string, double> margins = {
      {"onebit", 0.005},    // error feedback sends everything in the end
      {"tbq", 0.01},        // like onebit, in portions of 0.5
      {"terngrad", 0.005},  // unbiased, with the variance of two bits
      {"dgc", 0.03},        {"graddrop", 0.02},
      {"int8block", 0.002},  // unbiased, one scale per block
      {"int4block", 0.01},  {"fp8block", 0.003},
      {"fp4block", 0.01},    // wrong by up to a fifth in both directions
      {"lossless", 0.0005},  // keeps all bits, but sums in another order
      {"fp16", 0.0005},      // rounds once
      {"bf16", 0.001},       // rounds more coarsely
  };
  const Curve plain = train_classifier({});
  CHECK(plain.test_accuracy > 0.95);
  CHECK(plain.loss.back() < 0.08);
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (row.additive) continue;  // these compress matrices, see below
    INFO(row.name);
    const Curve curve = train_classifier({std::string(row.name), true});
    REQUIRE(margins.contains(std::string(row.name)));
    CHECK(curve.test_loss <= plain.test_loss + margins.at(std::string(row.name)));
    CHECK(curve.test_accuracy >= plain.test_accuracy - 0.02);
  }
}

TEST_CASE("without error feedback the same threshold sends nothing, and nothing is learned") {
  // No entry of the averaged gradient stays above 0.5 for long. Only residuals reach the threshold.
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
    // Rank 2 of 16: later steps send what a step leaves out.
    CHECK(curve.test_loss <= plain.test_loss + 0.005);
    CHECK(curve.loss.back() <= plain.loss.back() + 0.005);
    CHECK(curve.test_accuracy >= plain.test_accuracy - 0.02);
  }
}

}  // namespace
}  // namespace hipress::training
