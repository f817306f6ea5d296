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
using Catch::StartsWith;

constexpr std::int64_t kEvaluations = 20;

Request of_vgg19(const std::string& bandwidth) {
  Request request;
  request.input = "vgg19";
  request.topology = "RING";
  request.nodes = 4;
  request.machines.profile = "v100-100g";
  request.machines.bandwidth = bandwidth;
  request.evaluations = kEvaluations;
  request.jobs = 1;
  return request;
}

/// Saving at that bandwidth, as advised for a request of its own.
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
  // The curve has values on both sides of the turn, and compression pays only below it.
  REQUIRE(point.curve.size() >= 10);
  CHECK(point.curve.front().value < turn.value);
  CHECK(point.curve.back().value > turn.value);
  CHECK(point.curve.front().saving->median > 0.5);
  CHECK(std::ranges::is_sorted(point.curve, {}, &Elsewhere::value));
  CHECK(point.curve.front().saving->probability >= kSure);
  CHECK(point.curve.back().saving->probability <= 1 - kSure);
  const auto sentences = describe(point, tolerance);
  REQUIRE(sentences.size() == 1);
  CHECK_THAT(sentences[0], Contains("compressing pays below ") && Contains("bit/s: surely up to "));
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
  // At other values, plans are searched with the requested number of evaluations, here 1.
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
        std::vector<std::string>{"no break-even between 2 nodes and 2048 nodes: compressing pays "
                                 "at every number of nodes in "
                                 "between"});
}

/// A break-even point with a curve at 1, 2, 4 … Gbit/s. `probabilities` are those of the curve:
/// compression pays where they exceed one half.
BreakEvenPoint point_of(const std::vector<double>& probabilities) {
  BreakEvenPoint point{.quantity = &find_quantity("bandwidth"), .given = 1e9 / 8};
  double gigabits = 1;
  for (const double probability : probabilities) {
    const double median = probability > 0.5 ? 0.2 : 0;
    point.curve.push_back({.value = gigabits * 1e9 / 8,
                           .compressed_s = 1 - median,
                           .uncompressed_s = 1,
                           .saving = sim::Saving{median, median, median, probability}});
    gigabits *= 2;
  }
  return point;
}

Turn turn_at(double gigabits, bool compress_below, std::optional<double> low,
             std::optional<double> high) {
  constexpr double kGigabit = 1e9 / 8;
  Turn turn{.value = gigabits * kGigabit, .compress_below = compress_below};
  if (low) turn.low = *low * kGigabit;
  if (high) turn.high = *high * kGigabit;
  return turn;
}

TEST_CASE("without a turn it is said on which side the range is, and where that is sure") {
  const auto says = [](BreakEvenPoint point) { return describe(point, 0.005); };
  using Sentences = std::vector<std::string>;
  CHECK(says(point_of({1, 0.95, 0.9})) ==
        Sentences{
            "no break-even between 1 Gbit/s and 4 Gbit/s: compressing pays at every bandwidth in "
            "between"});
  CHECK(says(point_of({1, 0.95, 0.8})) ==
        Sentences{
            "no break-even between 1 Gbit/s and 4 Gbit/s: compressing pays at every bandwidth in "
            "between, surely from 1 Gbit/s to 2 Gbit/s"});
  CHECK(says(point_of({1, 0.8, 0.95})) ==
        Sentences{
            "no break-even between 1 Gbit/s and 4 Gbit/s: compressing pays at every bandwidth in "
            "between, surely at 2 of 3 values"});
  CHECK(says(point_of({0, 0.05})) ==
        Sentences{"no break-even between 1 Gbit/s and 2 Gbit/s: compressing does not pay at every "
                  "bandwidth in between"});
  CHECK(says(point_of({0.6, 0.8})) ==
        Sentences{"no break-even between 1 Gbit/s and 2 Gbit/s: it is too close to call at every "
                  "bandwidth in between"});
  CHECK(says(point_of({0.4, 0.3})) ==
        Sentences{
            "no break-even between 1 Gbit/s and 2 Gbit/s: compressing saves too little, but it is "
            "close at every bandwidth in between"});
  BreakEvenPoint wide = point_of({1, 1});
  for (Elsewhere& at : wide.curve) at.answer = Answer::kTooUncertain;
  CHECK(says(wide) == Sentences{"no break-even between 1 Gbit/s and 2 Gbit/s: predictions are too "
                                "uncertain at every bandwidth in between"});
  CHECK(says(point_of({})) == Sentences{"no break-even: no plans could be compared"});
}

TEST_CASE("turns become one sentence for each stretch in which compressing pays") {
  const auto says = [](const std::vector<Turn>& turns) {
    BreakEvenPoint point = point_of({1, 0});
    point.turns = turns;
    return describe(point, 0.005);
  };
  using Sentences = std::vector<std::string>;
  CHECK(says({turn_at(10, true, 8, 12)}) ==
        Sentences{
            "compressing pays below 10 Gbit/s: surely up to 8 Gbit/s, surely not from 12 Gbit/s "
            "on"});
  CHECK(says({turn_at(10, true, 8, {})}) ==
        Sentences{
            "compressing pays below 10 Gbit/s: surely up to 8 Gbit/s, too close to call from 10 "
            "Gbit/s on"});
  CHECK(says({turn_at(10, true, {}, 12)}) ==
        Sentences{
            "compressing pays below 10 Gbit/s: savings too small to be sure, surely not from 12 "
            "Gbit/s on"});
  CHECK(
      says({turn_at(10, true, {}, {})}) ==
      Sentences{
          "compressing pays below 10 Gbit/s: savings too small to be sure, too close to call from "
          "10 Gbit/s on"});
  CHECK(
      says({turn_at(10, false, 8, 12)}) ==
      Sentences{"compressing pays from 10 Gbit/s on: surely from 12 Gbit/s on, surely not up to 8 "
                "Gbit/s"});
  CHECK(says({turn_at(10, false, {}, 12)}) ==
        Sentences{
            "compressing pays from 10 Gbit/s on: surely from 12 Gbit/s on, too close to call below "
            "10 Gbit/s"});
  CHECK(says({turn_at(10, false, 8, 12), turn_at(2000, true, 1600, 2400)}) ==
        Sentences{
            "compressing pays between 10 Gbit/s and 2 Tbit/s: surely from 12 Gbit/s to 1.6 Tbit/s, "
            "surely not up to 8 Gbit/s, surely not from 2.4 Tbit/s on"});
  CHECK(says({turn_at(10, true, 8, 12), turn_at(40, false, 30, {})}) ==
        Sentences{
            "compressing pays below 10 Gbit/s: surely up to 8 Gbit/s, surely not from 12 Gbit/s to "
            "30 Gbit/s",
            "compressing pays from 40 Gbit/s on: savings too small to be sure"});
  CHECK(says({turn_at(10, true, 8, 35), turn_at(40, false, 30, 50)}).front() ==
        "compressing pays below 10 Gbit/s: surely up to 8 Gbit/s, too close to call between 10 "
        "Gbit/s "
        "and 40 Gbit/s");
}

TEST_CASE("without a turn in the usual range it is looked for as far as the quantity makes sense") {
  // From 20 Mbit/s, the usual range ends at 1.28 Gbit/s. Compression still pays far above that.
  const PreparedRequest slow(of_vgg19("20Mbps"), PlanForm::kYaml);
  WhatIf what_if(slow, kEvaluations);
  const BreakEvenPoint point = break_even_point(what_if, find_quantity("bandwidth"));
  REQUIRE(point.turns.size() == 1);
  CHECK(point.turns.front().value > 64 * point.given);
  CHECK(point.curve.back().value > point.turns.front().value);
  // Starting at another bandwidth, the search must find the same turn.
  const PreparedRequest fast(of_vgg19("25Gbps"), PlanForm::kYaml);
  WhatIf other(fast, kEvaluations);
  CHECK(break_even_point(other, find_quantity("bandwidth")).turns.front().value ==
        Approx(point.turns.front().value).epsilon(0.05));
}

TEST_CASE("where computation hides everything, no bandwidth that makes sense is left out") {
  // On a ring of four, 143.7 million fp32 values take 2 · 3/4 · 32 bits each: 6900 s at 1 Mbit/s,
  // which 1000 s of computation cannot hide, and 18 s at 390 Mbit/s, a 64th of the given bandwidth.
  Request request = of_vgg19("25Gbps");
  request.times.compute_time = "1000s";
  const PreparedRequest prepared(request, PlanForm::kYaml);
  WhatIf what_if(prepared, kEvaluations);
  const BreakEvenPoint point = break_even_point(what_if, find_quantity("bandwidth"));
  REQUIRE(point.turns.size() == 1);
  CHECK(point.turns.front().compress_below);
  CHECK(point.turns.front().value < point.given / 64);
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

TEST_CASE("known plans are simulated again, and turn about where searched ones do") {
  const QuantityRow& bandwidth = find_quantity("bandwidth");
  const PreparedRequest prepared(of_vgg19("10Gbps"), PlanForm::kYaml);
  const Advice advice = advise(prepared);
  WhatIf known(prepared, kEvaluations, &advice, Compared::kKnown);
  CHECK(known.is_brief());
  const Elsewhere twice = known.at(bandwidth, 20e9 / 8);
  const PreparedRequest faster(of_vgg19("20Gbps"), PlanForm::kYaml);
  const TimedPlan& plan = advice.comparison.compressed->plan;
  const auto own_s =
      affordable_iteration(faster.model, plan.plan, *faster.machines, plan.transfer_order);
  // At this value, another known plan may be faster than the fastest at 10 Gbit/s.
  CHECK(*twice.compressed_s <= *own_s.iteration_s);
  CHECK(*twice.compressed_s > 0.8 * *own_s.iteration_s);
  const BreakEvenPoint brief = break_even_point(known, bandwidth);
  WhatIf searched(prepared, kEvaluations);
  const BreakEvenPoint thorough = break_even_point(searched, bandwidth);
  REQUIRE(brief.turns.size() == 1);
  REQUIRE(thorough.turns.size() == 1);
  CHECK(brief.turns[0].compress_below == thorough.turns[0].compress_below);
  CHECK(brief.turns[0].value == Approx(thorough.turns[0].value).epsilon(0.3));
  CHECK(brief.curve.size() < thorough.curve.size());
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
  CHECK_THAT(all, Contains("without compression, this job is bound by the network: of ") &&
                      Contains("with compression, this job is bound by ") &&
                      Contains("twice the bandwidth, 20 Gbit/s: ") &&
                      Contains("half the nodes, 2 nodes: ") && Contains("codecs twice as fast: ") &&
                      Contains("schedule local(steps=10), uncompressed: ") &&
                      Contains("compressing pays below "));
  // With 1000 s of computation, only faster computation saves time.
  Request slow = of_vgg19("10Gbps");
  slow.times.compute_time = "1000s";
  const PreparedRequest computing(slow, PlanForm::kYaml);
  WhatIf of_computing(computing, kEvaluations);
  CHECK_THAT(in_words(of_computing, advise(computing)).front(),
             StartsWith("without compression, this job is bound by computation: of 1000s, ") &&
                 Contains("computation twice as fast would save 50 %, the network 0 %"));
  // For other machines, the answer is that of a request of its own.
  const Elsewhere& faster = what_if.at(find_quantity("bandwidth"), 20e9 / 8);
  const PreparedRequest twice(of_vgg19("20Gbps"), PlanForm::kYaml);
  CHECK(*faster.compressed_s == advise(twice).comparison.compressed->plan.iteration_s);
}

}  // namespace
}  // namespace hipress::planner
