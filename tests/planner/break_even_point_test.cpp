#include "planner/advice/break_even_point.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "planner/advice/in_words.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

constexpr std::int64_t kEvaluations = 20;

Request of_vgg19(const std::string& bandwidth) {
  Request request;
  request.input = "vgg19";
  request.topology = "RING";
  request.nodes = 4;
  request.machines.profile = "v100_100g";
  request.machines.bandwidth = bandwidth;
  request.evaluations = kEvaluations;
  request.jobs = 1;
  return request;
}

/// What a request of its own says of that bandwidth.
double saved_at(double bandwidth) {
  const PreparedRequest prepared(of_vgg19(std::to_string(bandwidth) + "B/s"), PlanForm::kYaml);
  const Advice advice = advise(prepared);
  return 1 - advice.comparison.compressed->plan.iteration_s /
                 advice.comparison.uncompressed->plan.iteration_s;
}

TEST_CASE("where the verdict turns, advice for either side says so") {
  const PreparedRequest prepared(of_vgg19("25Gbps"), PlanForm::kYaml);
  WhatIf what_if(prepared, kEvaluations);
  const BreakEvenPoint point = break_even_point(what_if, find_quantity("bandwidth"));
  CHECK(point.given == 25e9 / 8);
  REQUIRE(point.turns.size() == 1);
  const Turn& turn = point.turns.front();
  CHECK(turn.compress_below);
  REQUIRE(turn.low);
  CHECK(*turn.low < turn.value);
  if (turn.high) CHECK(*turn.high > turn.value);
  const double tolerance = prepared.problem.tolerance;
  for (const double factor : {0.25, 0.9}) CHECK(saved_at(factor * turn.value) > tolerance);
  for (const double factor : {1.1, 4.0}) CHECK(saved_at(factor * turn.value) <= tolerance);
  // The curve is of both sides, and does not rise.
  REQUIRE(point.curve.size() >= 10);
  CHECK(point.curve.front().value < turn.value);
  CHECK(point.curve.back().value > turn.value);
  CHECK(point.curve.front().saving->median > 0.5);
  CHECK(std::ranges::is_sorted(point.curve, {}, &Elsewhere::value));
  CHECK(point.curve.front().saving->probability >= kSure);
  CHECK(point.curve.back().saving->probability <= 1 - kSure);
  const auto sentences = describe(point, tolerance);
  REQUIRE(sentences.size() == 1);
  CHECK_THAT(sentences[0], Contains("compress below") && Contains("bit/s (surely up to "));
}

TEST_CASE("at the given value a break-even says what the verdict says") {
  Request request = of_vgg19("10Gbps");
  request.evaluations = 4 * kEvaluations;
  const PreparedRequest prepared(request, PlanForm::kYaml);
  const Advice advice = advise(prepared);
  WhatIf what_if(prepared, 1, &advice);
  const QuantityRow& bandwidth = find_quantity("bandwidth");
  const Elsewhere here = what_if.at(bandwidth, bandwidth.of(prepared));
  CHECK(here.compressed_s == advice.comparison.planned_s);
  CHECK(here.answer == advice.verdict.answer);
  CHECK(here.saving->probability == advice.verdict.probability);
  // Elsewhere, plans are made with as many evaluations as were asked for.
  CHECK(what_if.at(bandwidth, bandwidth.of(prepared) / 2).compressed_s > here.compressed_s);
}

TEST_CASE("nodes are whole numbers, and without a turn the side is said that holds") {
  const PreparedRequest prepared(of_vgg19("10Gbps"), PlanForm::kYaml);
  WhatIf what_if(prepared, kEvaluations);
  const BreakEvenPoint point = break_even_point(what_if, find_quantity("nodes"));
  CHECK(point.given == 4);
  CHECK(point.turns.empty());
  CHECK(point.curve.front().value == 2);
  for (const Elsewhere& at : point.curve) CHECK(at.value == std::round(at.value));
  CHECK(describe(point, prepared.problem.tolerance) ==
        std::vector<std::string>{
            "compressing pays at every number of nodes from 2 nodes to 512 nodes"});
}

TEST_CASE("advice in words is of machines with several GPUs, too, at whatever level they are") {
  for (const char* topology : {"PS", "RING", "BEST"}) {
    CAPTURE(topology);
    Request request = of_vgg19("25Gbps");
    request.topology = topology;
    request.machines.gpus_per_node = 2;
    const PreparedRequest prepared(request, PlanForm::kYaml);
    const Advice advice = advise(prepared);
    WhatIf what_if(prepared, kEvaluations);
    std::string all;
    for (const std::string& sentence : in_words(what_if, advice)) all += sentence + "\n";
    CHECK_THAT(all, Contains("schedule local(steps=10), uncompressed: "));
  }
}

TEST_CASE("a quantity that there is not is refused with those that there are") {
  CHECK_THROWS_WITH(find_quantity("bandwith"),
                    Contains("'bandwith'") && Contains("bandwidth, latency, nodes, compute-time"));
}

TEST_CASE("advice in words has the times that it comes from") {
  const PreparedRequest prepared(of_vgg19("10Gbps"), PlanForm::kYaml);
  const Advice advice = advise(prepared);
  WhatIf what_if(prepared, kEvaluations);
  const std::vector<std::string> sentences = in_words(what_if, advice);
  std::string all;
  for (const std::string& sentence : sentences) {
    CHECK(sentence.find_first_of("0123456789") != std::string::npos);
    all += sentence + "\n";
  }
  CHECK_THAT(all, Contains("this job is bound by the network: of ") &&
                      Contains("twice the bandwidth, 20 Gbit/s: ") &&
                      Contains("half the nodes, 2 nodes: ") && Contains("codecs twice as fast: ") &&
                      Contains("schedule local(steps=10), uncompressed: ") &&
                      Contains("compress below "));
  // A machine of another kind is asked for as a request of its own would.
  const Elsewhere& faster = what_if.at(find_quantity("bandwidth"), 20e9 / 8);
  const PreparedRequest twice(of_vgg19("20Gbps"), PlanForm::kYaml);
  CHECK(*faster.compressed_s == advise(twice).comparison.compressed->plan.iteration_s);
}

}  // namespace
}  // namespace hipress::planner
