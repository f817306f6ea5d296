#include "models/mix.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "io/error.hpp"
#include "models/model.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::models {
namespace {

using Catch::Contains;

/// The model of a YAML whose third line is `line`.
Model with_line(const std::string& line) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("m.yaml");
  std::ofstream(path) << "name: m\nforward: 1ms\n"
                      << line << "\ngradients:\n- {name: a, elements: 4, ready: 1ms}\n";
  return read_model(path);
}

TEST_CASE("a model's mix is read by class, and what is not there has no share") {
  CHECK_FALSE(with_line("batch: 1").mix.has_value());
  const auto mix = with_line("mix: {norm: 0.05, gemm: 0.7, elementwise: 0.25}").mix;
  REQUIRE(mix.has_value());
  CHECK(*mix == Mix{0.7, 0, 0.25, 0, 0.05});
  // Three thirds with seven digits each add up to 0.9999999, which is within the tolerance.
  CHECK(with_line("mix: {gemm: 0.3333333, norm: 0.3333333, reduction: 0.3333333}").mix);
}

TEST_CASE("a mix that is none is refused with file, line and remedy") {
  CHECK_THROWS_WITH(with_line("mix: {gemm: 0.7, elementwise: 0.2}"),
                    Contains("m.yaml:3") && Contains("mix: the shares add up to 0.9, not to 1") &&
                        Contains("give every class of gemm, attention, elementwise"));
  CHECK_THROWS_WITH(with_line("mix: {gemm: 0.99999}"), Contains("add up to 0.99999"));
  CHECK_THROWS_WITH(with_line("mix: {}"), Contains("m.yaml:3") && Contains("add up to 0"));
  CHECK_THROWS_WITH(with_line("mix: {gem: 1}"),
                    Contains("m.yaml:3") &&
                        Contains("unknown class of computation 'gem'; did you mean 'gemm'?") &&
                        Contains("(known: gemm, attention, elementwise, reduction, norm)"));
  for (const char* const share : {"-0.1", "1.1", ".nan", "much"}) {
    CAPTURE(share);
    CHECK_THROWS_WITH(with_line(std::string("mix: {gemm: ") + share + "}"), Contains("m.yaml:3"));
  }
  CHECK_THROWS_WITH(with_line("mix: 0.5"), Contains("m.yaml:3") && Contains("mix"));
}

TEST_CASE("the assumed mix adds up to 1, and is written as it is read") {
  const Mix mix = assumed_mix();
  CHECK(std::accumulate(mix.begin(), mix.end(), 0.0) == Approx(1).margin(1e-12));
  CHECK(with_line("mix: " + mix_yaml(mix)).mix == mix);
  CHECK(describe({0.7, 0, 0.25, 0, 0.05}) == "gemm 70 %, elementwise 25 %, norm 5 %");
}

TEST_CASE("rounded shares add up to 1") {
  // Each share is 333.33 thousandths. Two are rounded down, and the first gets the missing unit.
  CHECK(rounded({1.0 / 3, 1.0 / 3, 1.0 / 3, 0, 0}, 3) == Mix{0.334, 0.333, 0.333, 0, 0});
  // Rounded down, 0.6666 loses 0.6 of a unit and 0.3333 loses 0.3, so 0.6666 gets the missing one.
  CHECK(rounded({0.6666, 0.3333, 0, 0, 0.0001}, 3) == Mix{0.667, 0.333, 0, 0, 0});
  CHECK(rounded({1, 0, 0, 0, 0}, 3) == Mix{1, 0, 0, 0, 0});
}

}  // namespace
}  // namespace hipress::models
