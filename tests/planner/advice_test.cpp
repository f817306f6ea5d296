#include "planner/advice/advice.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "planner/advice/comparison.hpp"
#include "planner/timing/forecast.hpp"
#include "plans/plan_file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;
using tests::TemporaryFolder;

/// Request with counted evaluations, so that every search gives the same plan.
Request counted(const std::string& topology) {
  Request request;
  request.input = "vgg19";
  request.topology = topology;
  request.nodes = 4;
  request.machines.profile = "v100-100g";
  request.machines.bandwidth = "10Gbps";
  request.evaluations = 60;
  request.jobs = 1;
  return request;
}

TEST_CASE("advice without a profile is SeCoPa's plan", "[slow]") {
  Request request;
  request.input = HIPRESS_SOURCE_DIR "/tests/data/vgg19_gradients.txt";
  for (const std::string topology : {"PS", "RING"}) {
    CAPTURE(topology);
    request.topology = topology;
    const PreparedRequest prepared(request, PlanForm::kText);
    const Advice advice = advise(prepared);
    const TemporaryFolder folder;
    const std::string path = folder.path("plan.txt");
    plans::write_plan_text(path, prepared.model, advice.found.plan);
    CHECK(io::read_file(path) ==
          io::read_file(HIPRESS_SOURCE_DIR "/tests/data/secopa_vgg19_" + topology + "_16.txt"));
  }
}

TEST_CASE("advice has a plan, what it is compared with, a bound and a verdict") {
  const PreparedRequest prepared(counted("BEST"), PlanForm::kYaml);
  const Advice advice = advise(prepared);
  CHECK(advice.found.plan.decisions.size() == prepared.model.gradients.size());
  REQUIRE(advice.comparison.planned_s);
  REQUIRE(advice.comparison.uncompressed);
  REQUIRE(advice.comparison.lower_bound_s);
  CHECK(*advice.comparison.lower_bound_s <= *advice.comparison.planned_s);
  CHECK(*advice.comparison.planned_s < advice.comparison.uncompressed->plan.iteration_s);
  CHECK(advice.verdict.answer == Answer::kCompress);
  CHECK_THAT(advice.verdict.sentence, Contains("compress ("));
}

TEST_CASE("what a request simulates ends after two budgets, or five seconds after one") {
  Request request = counted("PS");
  request.evaluations = std::nullopt;
  const auto left_s = [&](double budget_s) {
    request.budget_s = budget_s;
    return PreparedRequest(request, PlanForm::kText).machines->budget->left_s();
  };
  CHECK(left_s(1000) <= 2000);
  CHECK(left_s(1000) > 1000);  // fails only if reading the request takes 1000 s
  CHECK(left_s(0.5) <= 5.5);
  request.budget_s = std::nullopt;
  CHECK(PreparedRequest(request, PlanForm::kText).machines->budget->left_s() <= 7);
}

TEST_CASE("passes wait for no interval that begins above the plan's") {
  const PreparedRequest prepared(counted("PS"), PlanForm::kYaml);
  const Problem& problem = prepared.problem;
  SearchResult found = prepared.search.search(problem);
  Comparison comparison = compare_with_baselines(problem, found);
  REQUIRE(comparison.planned_s);
  const TimedPlan plan = {found.plan, found.transfer_order, *comparison.planned_s};
  const double upper_s = *upper_end_s(problem, plan);
  // Each of the three passes for accuracy may raise the upper end by the tolerance.
  const double limit_s = upper_s * std::pow(1 + problem.tolerance, 3);
  add_responses_of_rivals(problem, problem, plan, comparison);
  int simulated = 0, left_out = 0;
  for (const Baseline& baseline : comparison.baselines) {
    CAPTURE(baseline.name);
    if (!baseline.iteration_s || !may_be_plan(problem, baseline.plan)) {
      CHECK_FALSE(baseline.response);
      continue;
    }
    CHECK(baseline.response.has_value() == (*baseline.iteration_s <= limit_s));
    if (baseline.response) {
      ++simulated;
      continue;
    }
    ++left_out;
    const TimedPlan rival = {baseline.plan, baseline.transfer_order, *baseline.iteration_s};
    CHECK(*upper_end_s(problem, rival) >= *baseline.iteration_s);
  }
  CHECK(simulated > 0);
  CHECK(left_out > 0);
}

TEST_CASE("warnings go to whoever asks, and nonsense is refused before any search") {
  std::vector<std::string> warnings;
  Hooks hooks;
  hooks.warn = [&](const std::string& sentence) { warnings.push_back(sentence); };
  Request request = counted("PS");
  request.accuracy = {"tern=terngrad"};
  const PreparedRequest prepared(request, PlanForm::kText, hooks);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Contains("`accuracy` tern=… has no effect"));
  CHECK_THROWS_AS(PreparedRequest(counted("TREE"), PlanForm::kText), io::InputError);
  request = counted("PS");
  request.input = "vgg18";
  CHECK_THROWS_AS(PreparedRequest(request, PlanForm::kText), io::InputError);
  const auto refusal = [](auto change) {
    Request wrong = counted("PS");
    change(wrong);
    return tests::complaint([&] { PreparedRequest(wrong, PlanForm::kText); });
  };
  CHECK_THAT(refusal([](Request& wrong) { wrong.transfer_order = "nedd"; }),
             Contains("must be one of ready, need, best, got 'nedd'; did you mean 'need'?"));
  CHECK_THAT(refusal([](Request& wrong) { wrong.grouping = "some"; }), Contains("any, none, auto"));
  CHECK_THAT(refusal([](Request& wrong) { wrong.write = "fastes"; }), Contains("advised, fastest"));
  CHECK_THAT(refusal([](Request& wrong) { wrong.tolerance = -1; }),
             Contains("from 0 to 0.5, got -1"));
  CHECK_THAT(refusal([](Request& wrong) { wrong.budget_s = NAN; }), Contains("got nan"));
  CHECK_THAT(refusal([](Request& wrong) { wrong.jobs = 0; }), Contains("from 1 to 1024, got 0"));
}

TEST_CASE("whoever is interrupted gets the best plan so far") {
  const std::atomic<bool> interrupted = true;
  Hooks hooks;
  hooks.interrupted = &interrupted;
  Request request = counted("RING");
  request.evaluations = INT64_MAX;
  const PreparedRequest prepared(request, PlanForm::kYaml, hooks);
  const Advice advice = advise(prepared);
  CHECK_FALSE(advice.found.complete);
  CHECK(advice.found.plan.decisions.size() == prepared.model.gradients.size());
  CHECK_THAT(advice.found.diagnostics,
             Catch::VectorContains<std::string>("interrupted: this is the best plan so far"));
}

TEST_CASE("a plan that is given is looked at in the order that is asked for") {
  Request request = counted("PS");
  request.analysis.plan = "none";
  request.analysis.explain = true;
  request.transfer_order = "need";
  const auto order_of = [&] {
    const PreparedRequest prepared(request, PlanForm::kYaml);
    return advise(prepared).found.transfer_order;
  };
  // The order of a request counts only if it was given.
  CHECK(order_of() == sim::TransferOrder::kReady);
  request.transfer_order_given = true;
  CHECK(order_of() == sim::TransferOrder::kNeed);
}

TEST_CASE("several threads may ask for advice at the same time") {
  const std::vector<std::string> topologies = {"PS", "RING", "BEST"};
  const auto sentence_of = [](const std::string& topology) {
    const PreparedRequest prepared(counted(topology), PlanForm::kYaml);
    return advise(prepared).verdict.sentence;
  };
  std::vector<std::string> alone, together(topologies.size());
  for (const std::string& topology : topologies) alone.push_back(sentence_of(topology));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < topologies.size(); ++i) {
      threads.emplace_back([&, i] { together[i] = sentence_of(topologies[i]); });
    }
  }
  CHECK(together == alone);
}

}  // namespace
}  // namespace hipress::planner
