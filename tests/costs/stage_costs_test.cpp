#include "costs/stage_costs.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "costs/description.hpp"
#include "costs/profile.hpp"
#include "costs/robust.hpp"

namespace hipress::costs {
namespace {

/// Works of square and oblong gradients of 2^14 … 2^24 elements, with factors of rows × rank.
std::vector<StageWork> grid() {
  std::vector<StageWork> all;
  for (int exponent = 14; exponent <= 24; exponent += 2) {
    for (const int rank : {1, 4, 16}) {
      for (const int aspect : {1, 8}) {
        const std::int64_t elements = std::int64_t{1} << exponent;
        const auto values = static_cast<std::int64_t>(std::sqrt(elements / aspect)) * rank;
        all.push_back({elements, elements * rank, values, values * rank});
      }
    }
  }
  return all;
}

std::vector<StageSample> samples_of(const StageCosts& costs) {
  std::vector<StageSample> samples;
  for (const StageWork& work : grid()) samples.push_back({work, costs.seconds(work)});
  return samples;
}

void check_close(const StageCosts& fitted, const StageCosts& costs, double epsilon) {
  CHECK(fitted.a_s == Approx(costs.a_s).epsilon(epsilon));
  CHECK(fitted.per_element_s == Approx(costs.per_element_s).epsilon(epsilon));
  CHECK(fitted.per_element_rank_s == Approx(costs.per_element_rank_s).epsilon(epsilon));
  CHECK(fitted.per_value_s == Approx(costs.per_value_s).epsilon(epsilon));
  CHECK(fitted.per_value_rank_s == Approx(costs.per_value_rank_s).epsilon(epsilon));
}

TEST_CASE("a stage takes a + b·E + c·E·r + d·F + e·F·r") {
  const StageCosts costs = {1, 2, 3, 5, 7};
  // 1 + 2·10 + 3·10·4 + 5·6 + 7·6·4 = 339
  CHECK(stage_seconds(costs, 10, 6, 4) == 339);
  CHECK(costs.seconds({10, 40, 6, 24}) == 339);
  CHECK(stage_seconds(costs.times(2), 10, 6, 4) == 678);
  // Two such gradients coded together share the launches: 2·339 − 1.
  CHECK(costs.seconds({20, 80, 12, 48}) == 677);
}

TEST_CASE("an encode works on its own factor, the decode on all of them") {
  const std::vector<kernels::Stage> stages = {
      {.bytes = 4 * 300, .additive = true, .rank = 3},
      {.bytes = 2 * 60, .values = kernels::ValueType::kFloat16, .additive = true, .rank = 2}};
  CHECK(encode_work(stages, 0, 2000) == StageWork{2000, 6000, 300, 900});
  CHECK(encode_work(stages, 1, 2000) == StageWork{2000, 4000, 60, 120});
  CHECK(decode_work(stages, 2000) == StageWork{2000, 6000, 360, 1020});
}

TEST_CASE("a fit finds the costs that made its samples") {
  const StageCosts full = {2e-5, 3e-10, 5e-11, 4e-9, 6e-10};
  check_close(fit_stage(samples_of(full)).costs, full, 1e-6);
  CHECK(fit_stage(samples_of(full)).max_relative_residual < 1e-9);
  // Terms that cost nothing get 0.
  const StageCosts some = {2e-5, 0, 5e-11, 0, 0};
  check_close(fit_stage(samples_of(some)).costs, some, 1e-6);
  CHECK(fit_stage(samples_of(some)).costs.per_element_s == 0);
  CHECK(fit_stage(samples_of(some)).costs.per_value_s == 0);
}

TEST_CASE("a fit has no negative cost, and is the best of those") {
  // Times fall with the size: 3 s for 1 element, 1 s for 2. The best fit is a constant a, for which
  // (a/3 − 1)² + (a − 1)² is least: (a/3 − 1)/3 + (a − 1) = 0, a = 1.2.
  const std::vector<StageSample> falling = {{{1, 0, 0, 0}, 3}, {{2, 0, 0, 0}, 1}};
  const StageFit fit = fit_stage(falling);
  CHECK(fit.costs.per_element_s == 0);
  CHECK(fit.costs.a_s == Approx(1.2));
}

TEST_CASE("noise moves a fit little, and one bad sample less") {
  const StageCosts costs = {2e-5, 3e-10, 5e-11, 4e-9, 6e-10};
  std::vector<StageSample> samples = samples_of(costs);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].seconds *= i % 2 == 0 ? 1.02 : 0.98;
  samples[20].seconds *= 10;
  const StageFit fit = fit_stage(samples);
  for (const StageWork& work : grid())
    CHECK(fit.costs.seconds(work) == Approx(costs.seconds(work)).epsilon(0.05));
  CHECK(fit.median_relative_residual < 0.05);
}

TEST_CASE("samples of one rank are explained, without a cost of the rank") {
  std::vector<StageSample> samples;
  for (const std::int64_t elements : {10'000, 100'000, 1'000'000})
    samples.push_back({{elements, elements, 0, 0}, 1e-5 + 1e-9 * static_cast<double>(elements)});
  const StageFit fit = fit_stage(samples);
  check_close(fit.costs, {1e-5, 1e-9, 0, 0, 0}, 1e-6);
}

TEST_CASE("a fit needs samples with times") {
  CHECK_THROWS_AS(fit_stage({}), std::invalid_argument);
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::infinity()})
    CHECK_THROWS_AS(fit_stage({{{1, 1, 1, 1}, seconds}}), std::invalid_argument);
}

TEST_CASE("a bad residual weighs as much as one at the bend") {
  CHECK(huber_weight(0.01, 0.02) == 1);
  // The factor is the square root of 0.02/0.08.
  CHECK(huber_weight(0.08, 0.02) == 0.5);
}

TEST_CASE("costs of stages hold for every rank, and for no other parameter") {
  CHECK(with_rank("powersgd", 8) == "powersgd(rank=8)");
  CHECK(with_rank("powersgd( rank = 4 )", 8) == "powersgd(rank=8)");
  CHECK(with_rank("acpsgd(x=1,rank=4,y=2)", 8) == "acpsgd(rank=8,x=1,y=2)");
  CHECK(with_rank("acpsgd(x=1, rank=4)", {}) == "acpsgd(x=1)");
  CHECK(with_rank("powersgd(rank=4)", {}) == "powersgd");

  Profile profile;
  profile.codecs["in_stages"].stages = {{1e-5, 0, 0, 0, 0}};
  CHECK(foreign_costs(profile, "in_stages(rank=8)").empty());
  CHECK_FALSE(foreign_costs(profile, "in_stages(rank=8,x=1)").empty());
  profile.codecs["in_stages"].stages.clear();
  CHECK_FALSE(foreign_costs(profile, "in_stages(rank=8)").empty());
}

}  // namespace
}  // namespace hipress::costs
