#include <Eigen/Dense>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "kernels/codec/codec.hpp"
#include "kernels/frames/cast.hpp"
#include "kernels/host/isa.hpp"
#include "kernels/lowrank/operators.hpp"
#include "tests/kernels/staged_cluster.hpp"

namespace hipress::kernels {
namespace {

using Catch::Contains;
using Eigen::MatrixXd;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::vector<std::string> kNames = {"powersgd", "acpsgd", "rsketch"};

using testing::Cluster, testing::Dimensions, testing::Numbers, testing::Replica, testing::same_bits;

std::string with(const std::string& name, int rank, int feedback) {
  return name + "(rank=" + std::to_string(rank) + ",ef=" + std::to_string(feedback) + ")";
}

Numbers normal(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  Numbers numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = distribution(generator);
  return numbers;
}

bool same_bits(const std::vector<Numbers>& a, const std::vector<Numbers>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Numbers& x, const Numbers& y) { return same_bits(x, y); });
}

bool all_nan(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isnan(x); });
}

bool all_zero(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return x == 0; });
}

bool all_finite(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
}

/// Matrix whose numbers are stored row by row, as in gradients.
MatrixXd matrix(const Numbers& numbers, std::int64_t rows, std::int64_t columns) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(numbers.data(), rows, columns).cast<double>();
}

/// Matrix whose numbers are stored column by column, as in factors.
MatrixXd factor(const float* numbers, std::int64_t rows, int rank) {
  return Eigen::Map<const Eigen::MatrixXf>(numbers, rows, rank).cast<double>();
}

/// One random gradient per node.
std::vector<Numbers> gradients(const Dimensions& shape, int nodes, unsigned seed) {
  std::vector<Numbers> made;
  for (int i = 0; i < nodes; ++i) {
    made.push_back(normal(elements_of(shape), 100 * seed + static_cast<unsigned>(i)));
  }
  return made;
}

double relative_error(const MatrixXd& got, const MatrixXd& expected) {
  return (got - expected).norm() / std::max(expected.norm(), 1e-300);
}

/// Largest deviation of the Gram matrix from the identity (from 0 where a column is 0).
double orthogonality_error(const MatrixXd& columns) {
  const MatrixXd gram = columns.transpose() * columns;
  double error = 0;
  for (Eigen::Index i = 0; i < gram.rows(); ++i) {
    for (Eigen::Index j = 0; j < gram.cols(); ++j) {
      const bool zero = columns.col(i).isZero(0);
      error = std::max(error, std::abs(gram(i, j) - (i == j && !zero ? 1.0 : 0.0)));
    }
  }
  return error;
}

MatrixXd orthonormal(const MatrixXd& columns) {
  const Eigen::HouseholderQR<MatrixXd> qr(columns);
  return qr.householderQ() * MatrixXd::Identity(columns.rows(), columns.cols());
}

/// A matrix whose singular values fall evenly, on a logarithmic scale, from 1 to 1 / `condition`.
Numbers conditioned(std::int64_t rows, int rank, double condition, unsigned seed) {
  const MatrixXd left = orthonormal(factor(normal(rows * rank, seed).data(), rows, rank));
  const MatrixXd right =
      orthonormal(factor(normal(std::int64_t{rank} * rank, seed + 1).data(), rank, rank));
  MatrixXd scaled = left;
  for (int c = 0; c < rank; ++c) {
    scaled.col(c) *= std::pow(condition, rank > 1 ? -double(c) / (rank - 1) : 0.0);
  }
  const Eigen::MatrixXf product = (scaled * right.transpose()).cast<float>();
  return Numbers(product.data(), product.data() + product.size());
}

void orthonormalise(Numbers& columns, std::int64_t rows, int rank,
                    lowrank::Drawn drawn = lowrank::Drawn::kNone) {
  const lowrank::Orthonormalisation item = {
      .factor = columns.data(), .rows = rows, .rank = rank, .drawn = drawn, .key = {.seed = 1}};
  lowrank::make_host_operators(best_isa())->orthonormalise({&item, 1}, nullptr);
}

// ---- orthonormal columns ----

TEST_CASE("columns become orthonormal whatever their condition, up to 10^6") {
  for (const int rank : {1, 2, 3, 4, 7, 8, 32, 128}) {
    for (const double condition : {1.0, 1e2, 1e4, 1e6}) {
      for (const std::int64_t rows : {std::int64_t{rank}, std::int64_t{131}, std::int64_t{2053}}) {
        if (rows < rank) continue;
        INFO(rows << " x " << rank << ", condition " << condition);
        const Numbers before = conditioned(rows, rank, condition, 5);
        Numbers columns = before;
        orthonormalise(columns, rows, rank);
        const MatrixXd basis = factor(columns.data(), rows, rank);
        CHECK(orthogonality_error(basis) < 1e-5);
        // The columns span the same space as those of a Householder QR: projecting the latter
        // changes little. A column's own rounding error is 6e-8.
        const MatrixXd oracle = orthonormal(factor(before.data(), rows, rank));
        CHECK((oracle - basis * (basis.transpose() * oracle)).norm() < 2e-6 * std::sqrt(rank));
      }
    }
  }
}

TEST_CASE("columns of very different lengths are independent all the same") {
  Numbers columns = normal(300, 8);
  for (std::size_t i = 0; i < 100; ++i) {
    columns[i] *= 1e-30f;
    columns[200 + i] *= 1e30f;
  }
  orthonormalise(columns, 100, 3);
  CHECK(orthogonality_error(factor(columns.data(), 100, 3)) < 1e-6);
  CHECK_FALSE(factor(columns.data(), 100, 3).col(0).isZero());
}

TEST_CASE("a dependent column becomes 0, and is drawn where that is asked for") {
  Numbers columns = normal(4 * 50, 9);
  for (std::size_t i = 0; i < 50; ++i) columns[100 + i] = 2 * columns[i];  // exactly
  for (std::size_t i = 0; i < 50; ++i) columns[150 + i] = 0;
  Numbers drawn = columns;
  orthonormalise(columns, 50, 4);
  const MatrixXd basis = factor(columns.data(), 50, 4);
  CHECK(orthogonality_error(basis) < 1e-6);
  CHECK(basis.col(2).isZero(0));
  CHECK(basis.col(3).isZero(0));
  CHECK_FALSE(basis.col(1).isZero());

  orthonormalise(drawn, 50, 4, lowrank::Drawn::kMissing);
  const MatrixXd whole = factor(drawn.data(), 50, 4);
  CHECK((whole.transpose() * whole - MatrixXd::Identity(4, 4)).norm() < 1e-6);
  // The first two columns do not depend on the drawing of the others.
  CHECK((basis.leftCols(2) - whole.leftCols(2)).norm() < 1e-6);
}

TEST_CASE("what is not finite makes all columns NaN, or all of them new") {
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    Numbers columns = normal(60, 10);
    columns[35] = bad;
    Numbers drawn = columns;
    orthonormalise(columns, 20, 3);
    CHECK(all_nan(columns));
    orthonormalise(drawn, 20, 3, lowrank::Drawn::kMissing);
    CHECK(orthogonality_error(factor(drawn.data(), 20, 3)) < 1e-6);
    CHECK_FALSE(factor(drawn.data(), 20, 3).col(0).isZero());
  }
}

TEST_CASE("draws have mean 0, variance 1 as a share of their length, and no direction in common") {
  Numbers drawn(4 * 10000), again = drawn;
  orthonormalise(drawn, 10000, 4, lowrank::Drawn::kAll);
  const MatrixXd columns = factor(drawn.data(), 10000, 4);
  // The 10000 entries of a column have variance 1 / 10000. Their mean has a standard deviation of
  // 1e-4; the mean of their fourth powers is about 3 / 10000², as for a normal distribution.
  for (int c = 0; c < 4; ++c) {
    CHECK(std::abs(columns.col(c).mean()) < 4e-4);
    CHECK(columns.col(c).array().pow(4).mean() * 1e8 == Approx(2.85).margin(0.3));
  }
  orthonormalise(again, 10000, 4, lowrank::Drawn::kAll);
  CHECK(same_bits(drawn, again));
}

// ---- shapes ----

TEST_CASE("low rank is refused where it does not save half") {
  const auto codec = make_codec("powersgd(rank=4)");
  CHECK(codec->refusal(Dimensions{64, 64}).empty());  // (64 + 64) · rank 4 · 2 < 64 · 64
  CHECK(codec->refusal(Dimensions{64, 3, 3, 3}).empty());
  CHECK_THAT(codec->refusal(Dimensions{16, 3, 3}), Contains("its 16 x 9"));
  CHECK(codec->refusal(Dimensions{16, 16}) ==
        "factors of rank 4 have more than half as many numbers as its 16 x 16");
  CHECK(codec->refusal(Dimensions{17, 16}).empty() == (33 * 4 * 2 < 17 * 16));
  for (const Dimensions& vector : {Dimensions{1000}, Dimensions{}, Dimensions{0}}) {
    CHECK_THAT(codec->refusal(vector), Contains("vector"));
  }
  CHECK_FALSE(codec->refusal(Dimensions{1, 1000}).empty());
  CHECK_FALSE(codec->refusal(Dimensions{1000, 1}).empty());
  CHECK_FALSE(codec->refusal(Dimensions{0, 50}).empty());
  // (16 + 16) · rank 4 · 2 = 16 · 16: saving exactly half is not enough.
  CHECK_FALSE(make_codec("acpsgd(rank=4)")->refusal(Dimensions{16, 16}).empty());
  CHECK(make_codec("acpsgd(rank=3)")->refusal(Dimensions{16, 16}).empty());
}

TEST_CASE("stages and states have the size of the factors") {
  const Dimensions shape = {64, 3, 3, 3};  // 64 x 27
  const auto power = make_codec("powersgd(rank=2)");
  REQUIRE(power->stages(shape).size() == 2);
  CHECK(power->stages(shape)[0].bytes == 64 * 2 * 4);
  CHECK(power->stages(shape)[1].bytes == 27 * 2 * 4);
  CHECK(power->stages(shape)[0].additive);
  CHECK(power->stages(shape)[0].rank == 2);
  CHECK(power->traits().additive);
  CHECK(power->traits().stages == 2);

  const auto turns = make_codec("acpsgd(rank=40)");  // the rank is limited to the 27 columns
  REQUIRE(turns->stages(shape).size() == 1);
  CHECK(turns->stages(shape)[0].bytes == 64 * 27 * 4);
  CHECK(turns->stage_bytes(shape, 0, 0) == 27 * 27 * 4);
  CHECK(turns->stage_bytes(shape, 0, 1) == 64 * 27 * 4);

  const auto names = [&](const std::string& text) {
    std::string joined;
    for (const StateArray& state : make_codec(text)->states(shape)) {
      joined += std::string(state.name) + ":" + std::to_string(state.elements) + " ";
    }
    return joined;
  };
  CHECK(names("powersgd(rank=2,ef=0)") == "q:54 ");
  CHECK(names("powersgd(rank=2,ef=1)") == "residual:1728 q:54 own:54 ");
  CHECK(names("powersgd(rank=2,ef=2)") == "residual:1728 q:54 ");
  CHECK(names("acpsgd(rank=2,ef=2)") == "residual:1728 p:128 q:54 ");
  CHECK(names("rsketch(rank=2)") == "residual:1728 sketch:54 own:128 ");
}

TEST_CASE("a staged codec has no encode() and says so") {
  const auto codec = make_codec("powersgd");
  CHECK_THROWS_AS(codec->encode({}), std::logic_error);
  CHECK_THROWS_WITH(codec->decode({}), Contains("decode_stages()"));
  CHECK(codec->encoded_bytes(0) == 0);
  CHECK(codec->encoded_bytes(33) == 132);
  CHECK_THROWS_WITH(codec->encode_stage(2, {}), Contains("no stage 2"));
  CHECK_THROWS_WITH(make_codec("powersgd(rank=129)"), Contains("rank, a whole number, from 1"));
  CHECK_THROWS_WITH(make_codec("rsketch(ef=3)"), Contains("out of range"));
  const Dimensions shape = {8, 8};
  Replica replica(*codec, shape);
  StagedSlice slice = replica.slice(shape, {});
  CHECK_THROWS_WITH(codec->encode_stage(0, {&slice, 1}), Contains("without values"));
  slice.states = slice.states.subspan(1);
  CHECK_THROWS_WITH(codec->encode_stage(0, {&slice, 1}), Contains("2 states; it has"));
}

// ---- against a reference in double ----

/// PowerSGD in double precision: the state of all nodes.
struct Reference {
  MatrixXd q;
  std::vector<MatrixXd> residuals;

  MatrixXd step(const std::vector<MatrixXd>& gradients, int feedback) {
    const auto nodes = static_cast<double>(gradients.size());
    std::vector<MatrixXd> v;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      v.push_back(feedback == 0 ? gradients[i] : MatrixXd(gradients[i] + residuals[i]));
    }
    MatrixXd p = MatrixXd::Zero(v[0].rows(), q.cols());
    for (const MatrixXd& one : v) p += one * q / nodes;
    p = orthonormal(p);
    MatrixXd mean = MatrixXd::Zero(q.rows(), q.cols());
    std::vector<MatrixXd> own;
    for (const MatrixXd& one : v) {
      own.push_back(one.transpose() * p);
      mean += own.back() / nodes;
    }
    const MatrixXd decoded = p * mean.transpose();
    for (std::size_t i = 0; i < v.size(); ++i) {
      residuals[i] = v[i] - (feedback == 1 ? MatrixXd(p * own[i].transpose()) : decoded);
    }
    q = mean;
    return decoded;
  }
};

TEST_CASE("powersgd follows the reference in double, with each residual and number of nodes",
          "[slow]") {
  for (const Dimensions& shape :
       {Dimensions{61, 47}, Dimensions{33, 7, 5}, Dimensions{600, 1100}}) {
    const std::int64_t rows = shape[0], columns = elements_of(shape) / rows;
    for (const int nodes : {1, 2, 3}) {
      if (shape[0] == 600 && nodes != 2) continue;
      for (const int feedback : {0, 1, 2}) {
        const int rank = shape[0] == 600 ? 5 : 4;
        INFO(rows << " x " << columns << ", " << nodes << " nodes, ef=" << feedback);
        const auto codec = make_codec(with("powersgd", rank, feedback));
        Cluster cluster(*codec, shape, nodes);
        // Codec and reference begin with the same factor.
        const Numbers first = normal(columns * rank, 77);
        for (int i = 0; i < nodes; ++i) cluster.state("q", static_cast<std::size_t>(i)) = first;
        Reference reference = {
            factor(first.data(), columns, rank),
            std::vector<MatrixXd>(static_cast<std::size_t>(nodes), MatrixXd::Zero(rows, columns))};
        for (unsigned step = 0; step < 5; ++step) {
          const std::vector<Numbers> inputs = gradients(shape, nodes, step + 1);
          std::vector<MatrixXd> exact;
          for (const Numbers& input : inputs) exact.push_back(matrix(input, rows, columns));
          const Numbers decoded = cluster.step(inputs);
          const MatrixXd expected = reference.step(exact, feedback);
          CHECK(relative_error(matrix(decoded, rows, columns), expected) < 1e-5);
          for (std::size_t i = 0; feedback > 0 && i < inputs.size(); ++i) {
            CHECK(relative_error(matrix(cluster.state("residual", i), rows, columns),
                                 reference.residuals[i]) < 1e-5);
          }
        }
      }
    }
  }
}

TEST_CASE("a matrix of low rank comes through whole, from the second step on at the latest") {
  const std::int64_t rows = 90, columns = 130;
  const MatrixXd low = factor(normal(rows * 3, 1).data(), rows, 3) *
                       factor(normal(columns * 3, 2).data(), columns, 3).transpose();
  Numbers gradient;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) gradient.push_back(static_cast<float>(low(i, j)));
  }
  for (const char* name : {"powersgd", "acpsgd"}) {
    INFO(name);
    const auto codec = make_codec(with(name, 4, 0));
    Cluster cluster(*codec, {rows, columns}, 1);
    Numbers decoded;
    for (int step = 0; step < 3; ++step) decoded = cluster.step({gradient});
    // A gradient of rank 3 is exact with rank 4. The fourth column is 0 or noise, not NaN.
    CHECK(relative_error(matrix(decoded, rows, columns), low) < 1e-5);
  }
}

TEST_CASE("with error feedback what is decoded and what is kept add up to the gradients") {
  const Dimensions shape = {70, 50};
  for (const std::string& name : kNames) {
    for (const int nodes : {1, 2, 3}) {
      for (const int feedback : {1, 2}) {
        INFO(name << ", " << nodes << " nodes, ef=" << feedback);
        const auto codec = make_codec(with(name, 3, feedback));
        Cluster cluster(*codec, shape, nodes);
        MatrixXd sent = MatrixXd::Zero(70, 50), given = sent;
        for (unsigned step = 0; step < 6; ++step) {
          const std::vector<Numbers> inputs = gradients(shape, nodes, step + 20);
          sent += matrix(cluster.step(inputs), 70, 50);
          for (const Numbers& input : inputs) given += matrix(input, 70, 50) / nodes;
        }
        // Means are linear: Σ mean gradients = Σ decoded gradients + mean residual.
        for (std::size_t i = 0; i < static_cast<std::size_t>(nodes); ++i) {
          sent += matrix(cluster.state("residual", i), 70, 50) / nodes;
        }
        CHECK(relative_error(sent, given) < 1e-5);
      }
    }
  }
}

TEST_CASE("a constant gradient's error stays bounded, so that its mean comes through") {
  // With a contraction by δ = rank / columns = 0.1 on average, the residual's norm stays below
  // about |M|·(1 − δ) / δ = 9·|M|; 20·|M| are allowed. If a decoder lost more, it would grow in
  // every step.
  const Dimensions shape = {40, 40};
  const Numbers gradient = normal(1600, 4);
  for (const std::string& name : kNames) {
    INFO(name);
    const auto codec = make_codec(with(name, 4, 1));
    Cluster cluster(*codec, shape, 1);
    MatrixXd sum = MatrixXd::Zero(40, 40);
    for (int step = 0; step < 300; ++step) sum += matrix(cluster.step({gradient}), 40, 40);
    CHECK(relative_error(sum / 300, matrix(gradient, 40, 40)) < 10.0 / 300 * 2);
  }
}

TEST_CASE("a sketch without error feedback is unbiased") {
  const Dimensions shape = {30, 20};
  const Numbers gradient = normal(600, 4);
  const auto codec = make_codec("rsketch(rank=5,ef=0)");
  Cluster cluster(*codec, shape, 1);
  MatrixXd sum = MatrixXd::Zero(30, 20);
  constexpr int kSteps = 4000;
  for (int step = 0; step < kSteps; ++step) sum += matrix(cluster.step({gradient}), 30, 20);
  // A decoded D has |D − M|² = |M|²·(columns / rank − 1) on average: a relative error of √3 per
  // step, and of √3 / √4000 for the mean of all steps.
  CHECK(relative_error(sum / kSteps, matrix(gradient, 30, 20)) < 1.3 * std::sqrt(3.0 / kSteps));
}

// ---- edges ----

TEST_CASE("thin, small and prime shapes, and ranks above the smaller side, come through") {
  for (const std::string& name : kNames) {
    for (const Dimensions& shape : {Dimensions{1, 1}, Dimensions{1, 257}, Dimensions{257, 1},
                                    Dimensions{13, 31}, Dimensions{2, 3}, Dimensions{7},
                                    Dimensions{}, Dimensions{509, 17}, Dimensions{17, 2053}}) {
      for (const int rank : {1, 3, 128}) {
        const auto codec = make_codec(with(name, rank, 1));
        const std::int64_t elements = elements_of(shape);
        const std::int64_t rows = shape.empty() ? 1 : shape[0], columns = elements / rows;
        INFO(name << ", " << rows << " x " << columns << ", rank " << rank);
        Cluster cluster(*codec, shape, 2);
        MatrixXd sent = MatrixXd::Zero(rows, columns), given = sent;
        for (unsigned step = 0; step < 3; ++step) {
          const std::vector<Numbers> inputs = gradients(shape, 2, step + 5);
          const Numbers decoded = cluster.step(inputs);
          REQUIRE(all_finite(decoded));
          sent += matrix(decoded, rows, columns);
          for (const Numbers& input : inputs) given += matrix(input, rows, columns) / 2;
          // With full rank, PowerSGD and the random sketch are exact.
          const bool whole = name == "powersgd"
                                 ? rank >= std::min(rows, columns)
                                 : name == "rsketch" && rank >= columns && rows >= columns;
          if (whole) CHECK(relative_error(sent, given) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("no elements are no work") {
  for (const std::string& name : kNames) {
    const auto codec = make_codec(name);
    for (const Dimensions& shape : {Dimensions{0}, Dimensions{0, 5}, Dimensions{5, 0}}) {
      Cluster cluster(*codec, shape, 2);
      CHECK(cluster.step({{}, {}}).empty());
    }
  }
}

TEST_CASE("a gradient of zeros decodes to zeros and leaves the factors as they were") {
  const Dimensions shape = {40, 30};
  for (const std::string& name : kNames) {
    for (const int feedback : {0, 2}) {
      INFO(name);
      const auto codec = make_codec(with(name, 4, feedback));
      Cluster fresh(*codec, shape, 2);
      CHECK(all_zero(fresh.step({Numbers(1200), Numbers(1200)})));
      if (name == "rsketch") continue;
      Cluster cluster(*codec, shape, 1);
      cluster.step(gradients(shape, 1, 1));
      cluster.step(gradients(shape, 1, 2));
      if (feedback == 2)
        std::fill(cluster.state("residual").begin(), cluster.state("residual").end(), 0.0f);
      const Numbers before = cluster.state("q");
      CHECK(all_zero(cluster.step({Numbers(1200)})));
      // Only the space that the factor spans matters: its columns are made orthonormal when used.
      const MatrixXd old = orthonormal(factor(before.data(), 30, 4));
      const MatrixXd now = orthonormal(factor(cluster.state("q").data(), 30, 4));
      CHECK((old - now * (now.transpose() * old)).norm() < 1e-5);
    }
  }
}

TEST_CASE("a column that a gradient of lower rank has lost is drawn anew") {
  const Dimensions shape = {40, 30};
  const auto codec = make_codec(with("powersgd", 2, 0));
  Cluster cluster(*codec, shape, 1);
  Numbers one(1200);
  one[31] = 3;  // a single entry: rank 1
  for (int step = 0; step < 2; ++step) {
    CHECK(relative_error(matrix(cluster.step({one}), 40, 30), matrix(one, 40, 30)) < 1e-6);
  }
  one[95] = 5;  // rank 2
  Numbers decoded;
  for (int step = 0; step < 3; ++step) decoded = cluster.step({one});
  CHECK(relative_error(matrix(decoded, 40, 30), matrix(one, 40, 30)) < 1e-6);
}

TEST_CASE("one NaN or infinity makes all values NaN on all nodes and changes no residual") {
  const Dimensions shape = {41, 37};
  for (const std::string& name : kNames) {
    for (const int feedback : {0, 1, 2}) {
      for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
        INFO(name << ", ef=" << feedback << ", " << bad);
        const auto codec = make_codec(with(name, 3, feedback));
        Cluster cluster(*codec, shape, 2);
        cluster.step(gradients(shape, 2, 1));
        cluster.step(gradients(shape, 2, 2));
        std::vector<Numbers> before;
        for (std::size_t i = 0; feedback > 0 && i < 2; ++i) {
          before.push_back(cluster.state("residual", i));
        }
        std::vector<Numbers> inputs = gradients(shape, 2, 3);
        inputs[1][700] = bad;
        CHECK(all_nan(cluster.step(inputs)));
        for (std::size_t i = 0; i < before.size(); ++i) {
          CHECK(same_bits(cluster.state("residual", i), before[i]));
        }
        CHECK(all_finite(cluster.step(gradients(shape, 2, 4))));
      }
    }
  }
}

TEST_CASE("numbers of any magnitude make no NaN", "[slow]") {
  const Dimensions shape = {70, 1500};
  const float largest = std::numeric_limits<float>::max();
  for (const std::string& name : kNames) {
    for (const float scale : {largest, 1e38f, 1e-38f, 1e-45f}) {
      for (const int feedback : {0, 1, 2}) {
        INFO(name << ", " << scale << ", ef=" << feedback);
        const auto codec = make_codec(with(name, 5, feedback));
        Cluster cluster(*codec, shape, 2);
        for (unsigned step = 0; step < 3; ++step) {
          std::vector<Numbers> inputs = gradients(shape, 2, step);
          for (Numbers& input : inputs) {
            for (float& x : input) x = std::clamp(x, -1.0f, 1.0f) * scale;
          }
          CHECK(all_finite(cluster.step(inputs)));
        }
      }
    }
  }
}

// ---- the same bits ----

TEST_CASE("every instruction set gives the bits of the plain path", "[slow]") {
  for (const std::string& name : kNames) {
    for (const Dimensions& shape :
         {Dimensions{67, 45}, Dimensions{530, 1100}, Dimensions{3, 2100}}) {
      for (const int rank : {1, 3, 4, 7}) {
        for (const float scale : {1.0f, 1e38f}) {
          if (scale != 1 && rank != 3) continue;
          const int feedback = rank % 3;
          INFO(name << ", " << shape[0] << " x " << shape[1] << ", rank " << rank);
          const auto plain = make_codec_for(with(name, rank, feedback), Isa::kScalar);
          for (const Isa isa : available_isas()) {
            if (isa == Isa::kScalar) continue;
            const auto codec = make_codec_for(with(name, rank, feedback), isa);
            Cluster expected(*plain, shape, 2), cluster(*codec, shape, 2);
            for (unsigned step = 0; step < 2; ++step) {
              std::vector<Numbers> inputs = gradients(shape, 2, step + 1);
              for (Numbers& input : inputs) {
                for (float& x : input) x *= scale;
              }
              INFO(to_string(isa) << ", step " << step);
              CHECK(same_bits(cluster.step(inputs), expected.step(inputs)));
              CHECK(same_bits(cluster.nodes[1].states, expected.nodes[1].states));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("gradients in one batch give the bits that they give alone") {
  const std::vector<Dimensions> shapes = {{67, 45}, {67, 45}, {8, 200}, {67, 45}};
  for (const std::string& name : kNames) {
    const auto codec = make_codec(with(name, 3, 1));
    std::vector<Replica> batch, alone;
    for (const Dimensions& shape : shapes) {
      batch.emplace_back(*codec, shape);
      batch.back().values = normal(elements_of(shape), static_cast<unsigned>(batch.size()));
      alone.emplace_back(*codec, shape);
      alone.back().values = batch.back().values;
    }
    std::vector<StagedSlice> together, single;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const DrawKey key = {.seed = 1, .step = 1, .gradient = static_cast<std::uint32_t>(i)};
      together.push_back(batch[i].slice(shapes[i], key));
      single.push_back(alone[i].slice(shapes[i], key));
    }
    for (int stage = 0; stage < codec->traits().stages; ++stage) {
      codec->encode_stage(stage, together);
      for (const StagedSlice& slice : single) codec->encode_stage(stage, {&slice, 1});
    }
    codec->decode_stages(together);
    for (const StagedSlice& slice : single) codec->decode_stages({&slice, 1});
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      CHECK(same_bits(batch[i].values, alone[i].values));
      CHECK(same_bits(batch[i].states, alone[i].states));
      // Gradients of the same shape have different draws.
      if (i == 1) CHECK_FALSE(same_bits(batch[0].states[1], batch[1].states[1]));
    }
  }
}

// ---- half precision ----

TEST_CASE("half-precision gradients are reckoned in fp32 and rounded once") {
  const Dimensions shape = {70, 1100};
  const auto elements = static_cast<std::size_t>(elements_of(shape));
  const auto check = [&](auto format, ValueType type) {
    using Format = decltype(format);
    for (const std::string& name : kNames) {
      INFO(name);
      const auto codec = make_codec(with(name, 4, 1));
      const Numbers exact = normal(elements_of(shape), 12);
      std::vector<std::uint16_t> codes(elements);
      Replica wide(*codec, shape), half(*codec, shape);
      wide.values.resize(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        codes[i] = static_cast<std::uint16_t>(Format::template encode<float>(exact[i]));
        wide.values[i] = Format::template decode<float>(std::uint32_t{codes[i]});
      }
      StagedSlice slices[2] = {wide.slice(shape, {}), half.slice(shape, {})};
      slices[1].values = codes.data();
      slices[1].type = type;
      for (int stage = 0; stage < codec->traits().stages; ++stage)
        codec->encode_stage(stage, slices);
      codec->decode_stages(slices);
      CHECK(same_bits(wide.states, half.states));
      for (std::size_t i = 0; i < elements; ++i) {
        REQUIRE(codes[i] == Format::template encode<float>(wide.values[i]));
      }
    }
  };
  check(Fp16(), ValueType::kFloat16);
  check(Bf16(), ValueType::kBfloat16);
}

}  // namespace
}  // namespace hipress::kernels
