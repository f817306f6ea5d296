#include "costs/overlap.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/overlap_fit.hpp"
#include "costs/profile.hpp"
#include "io/error.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;

OverlapMatrix some_matrix() {
  OverlapMatrix matrix{.codec_beside_transfer = 1.25, .transfer_beside_codec = 1.125};
  for (std::size_t i = 0; i < matrix.classes.size(); ++i) {
    const double more = 0.1 * static_cast<double>(i);
    matrix.classes[i] = {1 + more, 1.5 + more, 2 + more, 2.5 + more};
  }
  return matrix;
}

const std::string kRow =
    "{beside_codec: 1.1, beside_transfer: 1.2, slows_codec: 1.3, "
    "slows_transfer: 1.4}";

/// YAML of a matrix in which the row of the last class is `norm`.
std::string matrix_yaml(const std::string& norm) {
  std::string text =
      "nodes: 2\noverlap:\n  codec_beside_transfer: 1.5\n  transfer_beside_codec: 1.6\n  "
      "classes:\n";
  for (const char* const name : {"gemm", "attention", "elementwise", "reduction"}) {
    text += std::string("    ") + name + ": " + kRow + "\n";
  }
  return text + norm;
}

OverlapFactors read_text(const std::string& text, const OverlapFactors& of_profile = {}) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("cluster.yaml");
  std::ofstream(path) << text;
  Profile profile;
  profile.link = {1e-5, 1e9, 8e8, 2e-5, 1e-10, 1e-6};
  profile.overlap = of_profile;
  return read_cluster(path, profile, 0).overlap;
}

TEST_CASE("a model's factors are the means of its classes' by its mix") {
  OverlapMatrix matrix;
  matrix.classes[0] = {1.5, 1.25, 3, 1};
  matrix.classes[2] = {2, 1, 1, 5};
  matrix.codec_beside_transfer = 1.2;
  matrix.transfer_beside_codec = 1.7;
  const DirectedFactors found = directed({.matrix = matrix}, models::Mix{0.75, 0, 0.25, 0, 0});
  CHECK(found.compute_beside_codec == 0.75 * 1.5 + 0.25 * 2);
  CHECK(found.compute_beside_transfer == 0.75 * 1.25 + 0.25 * 1);
  CHECK(found.codec_beside_compute == 0.75 * 3 + 0.25 * 1);
  CHECK(found.transfer_beside_compute == 0.75 * 1 + 0.25 * 5);
  CHECK(found.codec_beside_transfer == 1.2);
  CHECK(found.transfer_beside_codec == 1.7);
  // Without a mix, the assumed mix is used.
  const models::Mix assumed = models::assumed_mix();
  CHECK(directed({.matrix = matrix}, {}) == directed({.matrix = matrix}, assumed));
}

TEST_CASE("constants mean the same in both directions, whatever the mix") {
  const OverlapFactors constants{
      .compute_codec = 1.1, .compute_transfer = 1.2, .codec_transfer = 1.3};
  const DirectedFactors expected{1.1, 1.2, 1.1, 1.3, 1.2, 1.3};
  CHECK(directed(constants, {}) == expected);
  CHECK(directed(constants, models::Mix{0, 0, 0, 0, 1}) == expected);
  CHECK(slows(constants));
  CHECK_FALSE(slows({}));
  CHECK_FALSE(slows({.matrix = OverlapMatrix{}}));
  CHECK(slows({.matrix = some_matrix()}));
}

TEST_CASE("a factor that is out of range is found wherever it stands") {
  CHECK_FALSE(out_of_range({.matrix = some_matrix()}).has_value());
  CHECK(out_of_range({.codec_transfer = 9}) == 9);
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    for (const ClassOverlapKey& key : kClassOverlapKeys) {
      OverlapMatrix matrix = some_matrix();
      matrix.classes[i].*key.factor = 0.5;
      CHECK(out_of_range({.matrix = matrix}) == 0.5);
    }
  }
}

TEST_CASE("a cluster file may have a whole matrix") {
  const OverlapFactors found =
      read_text(matrix_yaml("    norm: {beside_codec: 8, beside_transfer: "
                            "1, slows_codec: 1, slows_transfer: 2}\n"));
  REQUIRE(found.matrix.has_value());
  CHECK(found.matrix->codec_beside_transfer == 1.5);
  CHECK(found.matrix->transfer_beside_codec == 1.6);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(found.matrix->classes[i] == ClassOverlap{1.1, 1.2, 1.3, 1.4});
  }
  CHECK(found.matrix->classes[4] == ClassOverlap{8, 1, 1, 2});
}

TEST_CASE("a matrix with a missing entry is refused with file, line and remedy") {
  CHECK_THROWS_WITH(read_text(matrix_yaml("")),
                    Contains("cluster.yaml:5") && Contains("no row for 'norm'") &&
                        Contains("hipress-profile measures a whole matrix"));
  CHECK_THROWS_WITH(read_text(matrix_yaml("    norm: {beside_codec: 1, beside_transfer: 1, "
                                          "slows_codec: 1}\n")),
                    Contains("cluster.yaml:10") && Contains("no 'slows_transfer'") &&
                        Contains("give the constants compute_codec"));
  CHECK_THROWS_WITH(read_text("nodes: 2\noverlap: {codec_beside_transfer: 1}\n"),
                    Contains("cluster.yaml:2") && Contains("no 'transfer_beside_codec'"));
  CHECK_THROWS_WITH(
      read_text("nodes: 2\noverlap: {codec_beside_transfer: 1, transfer_beside_codec: 1}\n"),
      Contains("cluster.yaml:2") && Contains("no 'classes'"));
}

TEST_CASE("a matrix with a foreign entry is refused with file, line and remedy") {
  CHECK_THROWS_WITH(read_text(matrix_yaml("    norms: " + kRow + "\n")),
                    Contains("cluster.yaml:10") &&
                        Contains("unknown class of computation 'norms'") &&
                        Contains("did you mean 'norm'"));
  CHECK_THROWS_WITH(read_text(matrix_yaml("    norm: {besides_codec: 1}\n")),
                    Contains("cluster.yaml:10") && Contains("did you mean 'beside_codec'"));
  CHECK_THROWS_WITH(read_text(matrix_yaml("    norm: " + kRow + "\n  compute_codec: 1.5\n")),
                    Contains("cluster.yaml:11") && Contains("a matrix has no constants"));
  CHECK_THROWS_WITH(read_text(matrix_yaml("    norm: {beside_codec: 8.5, beside_transfer: 1, "
                                          "slows_codec: 1, slows_transfer: 1}\n")),
                    Contains("cluster.yaml:10") && Contains("norm.beside_codec: must be 1 to 8"));
}

TEST_CASE("a constant of a cluster file stands for all of a profile's matrix that it is about") {
  const OverlapFactors found = read_text(
      "nodes: 2\noverlap: {compute_codec: 3, codec_transfer: 4}\n", {.matrix = some_matrix()});
  REQUIRE(found.matrix.has_value());
  CHECK(found.matrix->codec_beside_transfer == 4);
  CHECK(found.matrix->transfer_beside_codec == 4);
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    const ClassOverlap before = some_matrix().classes[i];
    CHECK(found.matrix->classes[i] ==
          ClassOverlap{3, before.beside_transfer, 3, before.slows_transfer});
  }
}

TEST_CASE("a profile's matrix is read back as it was written") {
  Profile profile = read_profile("sosp21");
  profile.overlap.matrix = some_matrix();
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  write_profile(path, profile);
  CHECK(read_profile(path).overlap == profile.overlap);
}

/// Echo's kernels, in the order of the file.
std::vector<BesideSample> echo_kernels() {
  std::ifstream file(HIPRESS_SOURCE_DIR "/tests/data/echo_kernels.csv");
  std::string line;
  std::getline(file, line);
  REQUIRE(line == "class,alone_ns,beside_collective_ns");
  std::vector<BesideSample> rows;
  while (std::getline(file, line)) {
    BesideSample& row = rows.emplace_back();
    std::istringstream fields(line);
    char comma = 0;
    std::getline(fields, row.of_class, ',');
    fields >> row.alone_s >> comma >> row.beside_s;
    row.alone_s *= 1e-9;
    row.beside_s *= 1e-9;
  }
  return rows;
}

TEST_CASE("factors per class of every second kernel of Echo's predict the others") {
  const std::vector<BesideSample> all = echo_kernels();
  CHECK(all.size() > 220);
  for (const std::size_t first : {0, 1}) {
    std::vector<BesideSample> fitted, others;
    for (std::size_t i = 0; i < all.size(); ++i)
      (i % 2 == first ? fitted : others).push_back(all[i]);
    const std::map<std::string, double> factors = class_factors(fitted);
    double predicted_s = 0, measured_s = 0, missed_s = 0;
    for (const BesideSample& kernel : others) {
      const double kernel_s = kernel.alone_s * factors.at(kernel.of_class);
      predicted_s += kernel_s;
      measured_s += kernel.beside_s;
      missed_s += std::abs(kernel_s - kernel.beside_s);
    }
    CAPTURE(first, predicted_s, measured_s, missed_s / measured_s);
    CHECK(std::abs(predicted_s / measured_s - 1) < 0.10);
    // One factor for all classes predicts the total, too, but single kernels less well.
    std::vector<BesideSample> alike = fitted;
    for (BesideSample& kernel : alike) kernel.of_class = "any";
    const double constant = class_factors(alike).at("any");
    double missed_by_one_s = 0;
    for (const BesideSample& kernel : others) {
      missed_by_one_s += std::abs(kernel.alone_s * constant - kernel.beside_s);
    }
    CAPTURE(constant, missed_by_one_s / measured_s);
    CHECK(missed_s < missed_by_one_s / 2);
  }
}

TEST_CASE("the assumed mix is that of Echo's kernels, to the percent") {
  std::map<std::string, double> alone_s;
  double all_s = 0;
  for (const BesideSample& kernel : echo_kernels()) {
    alone_s[kernel.of_class == "other" ? "attention" : kernel.of_class] += kernel.alone_s;
    all_s += kernel.alone_s;
  }
  for (const models::ComputeClassRow& row : models::kComputeClassTable) {
    CAPTURE(row.name);
    CHECK(row.assumed_share == Approx(alone_s.at(std::string(row.name)) / all_s).margin(0.0051));
  }
}

TEST_CASE("classes' factors are weighted by time, and nothing gets faster") {
  // Samples of a take 3 s alone and 5 s beside other work. That of b got faster, which is noise.
  const std::vector<BesideSample> samples = {{"a", 1, 1}, {"a", 2, 4}, {"b", 2, 1}};
  const auto factors = class_factors(samples);
  CHECK(factors.at("a") == 5.0 / 3);
  CHECK(factors.at("b") == 1);
  const std::vector<BesideSample> none = {{"c", 0, 1}};
  CHECK_THROWS_WITH(class_factors(none), Contains("c took no time alone"));
}

}  // namespace
}  // namespace hipress::costs
