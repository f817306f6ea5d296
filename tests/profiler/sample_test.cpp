#include "profiler/sample.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "costs/profile.hpp"
#include "tests/planner/tool_run.hpp"

namespace hipress::profiler {
namespace {

std::vector<float> normals(int count) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(normal(generator));
  return values;
}

TEST_CASE("a sample's share is that of its message, and 1 where nothing can be saved") {
  // The 8 exponent bits of normal numbers compress to 2.65; 24 stay: (24 + 2.65) / 32 = 0.833.
  const auto lossless = kernels::make_codec("lossless");
  CHECK(message_share(*lossless, normals(1 << 18)) == Approx(0.833).margin(0.005));
  CHECK(message_share(*lossless, std::vector<float>(1 << 18, 0.5f)) < 0.79);
  CHECK(message_share(*lossless, normals(1)) == 1);
  // Numbers in bf16 have only 8 bits besides the exponent: (8 + 2.65) / 32 = 0.333.
  std::vector<float> halves = normals(1 << 18);
  for (float& value : halves) {
    value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000u);
  }
  CHECK(message_share(*lossless, halves) == Approx(0.333).margin(0.005));
  CHECK(message_share(*kernels::make_codec("fp16"), normals(1000)) == 1);
}

TEST_CASE("a sample changes one number of a profile, and what is no sample is refused", "[tool]") {
  using Catch::Contains;
  const planner::Workplace workplace;
  const planner::ToolRun no_row = workplace.run(
      "sh -c 'printf 12345678 > two.f32; hipress-profile --sample two.f32 --base sosp21'");
  CHECK(no_row.status == 2);
  CHECK_THAT(no_row.err, Contains("--sample: the profile has no algorithm whose messages vary") &&
                             Contains("--algorithm lossless"));
  const planner::ToolRun odd =
      workplace.run("sh -c 'printf 123 > odd.f32; hipress-profile --sample odd.f32 --base sosp21'");
  CHECK(odd.status == 2);
  CHECK_THAT(odd.err, Contains("odd.f32: has 3 bytes") && Contains("4 bytes each"));
  const planner::ToolRun not_measured = workplace.run(
      "sh -c 'printf 12345678 > two.f32; hipress-profile --sample two.f32 --algorithm fp16'");
  CHECK(not_measured.status == 2);
  CHECK_THAT(not_measured.err, Contains("add lossless") && !Contains("measuring"));
}

}  // namespace
}  // namespace hipress::profiler
