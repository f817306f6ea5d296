// Tests that hipress-plan answers every question for every kind of job (table in docs/planner.md).

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "casync/schedule.hpp"
#include "io/document.hpp"
#include "io/file.hpp"
#include "planner/problem/state_memory.hpp"
#include "requests/plan.hpp"
#include "requests/request.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::requests {
namespace {

using io::Document;

/// Answer about a small job with this schedule, and with one more field.
Document ask(const char* schedule, const Document& question) {
  Document request = {{"request", "plan"},
                      {"input", "vgg19"},
                      {"profile", "v100-100g"},
                      {"bandwidth", "5Gbps"},
                      {"compute_time", "200ms"},
                      {"nnodes", 4},
                      {"evaluations", 40},
                      {"algorithm", "int8block,fp16"},
                      {"schedule", Document::list({schedule})}};
  request.update(question);
  return answer(request, {});
}

TEST_CASE("every question is answered for every kind of job") {
  const char* const schedule =
      GENERATE("ddp", "local(steps=8, fragments=2)", "fsdp", "hsdp(shard=2)");
  CAPTURE(schedule);
  const tests::TemporaryFolder folder;
  SECTION("the plan itself") {
    const Document plan = ask(schedule, {{"output", folder.path("plan.yaml")}});
    CHECK(*plan.find("schedule")->text() == schedule);
    CHECK(plan.find("predicted_iteration_s")->number() > 0);
    CHECK(plan.find("predicted_iteration_s_p10")->number() <=
          plan.find("predicted_iteration_s")->number());
    CHECK(plan.find("advice")->text() != nullptr);
    CHECK(plan.find("peak_memory_bytes")->number() > 0);
    CHECK(plan.find("baselines")->members()->size() > 2);
    const Document simulated = answer({{"request", "simulate"},
                                       {"input", "vgg19"},
                                       {"profile", "v100-100g"},
                                       {"bandwidth", "5Gbps"},
                                       {"compute_time", "200ms"},
                                       {"nnodes", 4},
                                       {"plan", folder.path("plan.yaml")}},
                                      {});
    CHECK(*simulated.find("iteration_s")->number() ==
          Approx(*plan.find("predicted_iteration_s")->number()).epsilon(1e-9));
    // A plan's file can be asked the same questions.
    Document request = {{"plan", folder.path("plan.yaml")}, {"explain", true}};
    CHECK(ask(schedule, request).find("explain") != nullptr);
  }
  SECTION("a page") {
    const Document made = ask(schedule, {{"page", true}});
    CHECK(made.find("page")->text()->find("<html") != std::string::npos);
  }
  SECTION("where the verdict turns") {
    const Document made = ask(schedule, {{"break_even", "bandwidth"}, {"evaluations", 10}});
    CHECK(made.find("break_even")->find("curve")->items()->size() > 2);
  }
  SECTION("advice in words") {
    const Document made = ask(schedule, {{"advise", true}, {"evaluations", 10}});
    CHECK(made.find("in_words")->items()->size() >= 2);
  }
  SECTION("why") {
    const Document made = ask(schedule, {{"explain", true}});
    const Document& rows = *made.find("explain")->find("gradients");
    REQUIRE(rows.items()->size() == 38);
    CHECK(rows.items()->front().find("runner_up")->text() != nullptr);
    CHECK(rows.items()->front().find("runner_up_cost_s")->number().has_value());
  }
  SECTION("compared with another plan") {
    ask(schedule,
        {{"output", folder.path("plan.yaml")}, {"algorithm", "fp16"}, {"write", "fastest"}});
    const Document made =
        ask(schedule, {{"compare", folder.path("plan.yaml")}, {"write", "fastest"}});
    CHECK(made.find("compare")->find("second")->find("iteration_s")->number() > 0);
  }
  SECTION("if machines are not as expected") {
    const Document made =
        ask(schedule, {{"robust", true}, {"jitter", "lognormal:0.1"}, {"replicas", 8}});
    CHECK(made.find("robust")->find("robust")->find("p90_s")->number() <=
          made.find("robust")->find("nominal")->find("p90_s")->number());
  }
  SECTION("how much bandwidth, within a GPU's memory") {
    const Document made = ask(schedule, {{"required_bandwidth", true}, {"gpu_memory", "80GB"}});
    CHECK(made.find("required_bandwidth")->items()->size() == 10);
  }
  SECTION("with what the job runs today") {
    const Document made = ask(schedule, {{"today", "ddp_fp16"}});
    CHECK(made.find("verdict")->text() != nullptr);
  }
}

// ---- a schedule from outside of the project ----

/// FSDP's timetable, but all layers may be gathered ahead, whatever memory that takes.
casync::Timetable gather_ahead(const casync::ScheduleValues&, const models::Model& model) {
  casync::Timetable table = casync::Schedule::parse("fsdp").timetable(model);
  table.sharding->in_flight = static_cast<std::uint32_t>(table.synchronisations.size());
  return table;
}

std::string nothing(const casync::ScheduleValues&) { return ""; }

constexpr casync::ScheduleRow kAhead = {.name = "ahead",
                                        .help = "shards, all gathered ahead",
                                        .parameters = {},
                                        .check = nullptr,
                                        .timetable = gather_ahead,
                                        .gives_up = nothing,
                                        .sharded = true};

TEST_CASE("a sharded schedule of somebody else's is planned, bounded, reported and swept") {
  const casync::ScheduleRegistration registered(kAhead);
  const Document plan = ask("ahead", {{"page", true}, {"explain", true}});
  CHECK(*plan.find("schedule")->text() == "ahead");
  CHECK(plan.find("gap")->number().value() >= 0);
  CHECK(plan.find("page")->text()->find("ahead") != std::string::npos);
  CHECK(plan.find("baselines")->find("fsdp2")->number().value() > 0);
  CHECK(plan.find("predicted_iteration_s")->number().value() <=
        ask("fsdp", Document::object()).find("predicted_iteration_s")->number().value() * 1.01);
  const Document swept = answer({{"request", "sweep"},
                                 {"spec",
                                  {{"model", "vgg19"},
                                   {"profile", "v100-100g"},
                                   {"compute_time", "200ms"},
                                   {"schedule", Document::list({"fsdp", "ahead"})},
                                   {"plan", Document::list({"none"})},
                                   {"nodes", 4}}}},
                                {});
  CHECK(swept.find("rows")->items()->size() == 2);
}

// ---- verdicts over time and memory ----

/// A random transformer on random hosts of GPUs.
class RandomJob {
 public:
  explicit RandomJob(unsigned seed) : draws_(seed) {
    const int layers = 2 + pick(10);
    const std::int64_t width = 128 << pick(4);
    const double step_s = std::exp(between(std::log(0.01), std::log(2.0)));
    io::write_file(folder.path("model.yaml"), [&](std::ostream& out) {
      out << fmt::format("name: m\ndtype: {}\nforward: {}s\ngradients:\n",
                         pick(2) == 0 ? "float32" : "bfloat16", step_s / 3);
      for (int layer = layers; layer-- > 0;) {
        out << fmt::format("- {{name: layers.{}.weight, elements: {}, ready: {}s}}\n", layer,
                           12 * width * width, 2 * step_s / 3 * (layers - layer) / layers);
      }
    });
    const int hosts = 1 << (1 + pick(3)), each = 1 << pick(4);
    io::write_file(folder.path("cluster.yaml"), [&](std::ostream& out) {
      out << fmt::format("nodes: {}\nnodes_per_host: {}\nlink: {{bandwidth: {} Gbit/s}}\n",
                         hosts * each, each, 1 << pick(10));
      if (each > 1) out << "host_link: {bandwidth: 200GB/s}\n";
    });
  }

  PlanRequest request(const char* schedule) {
    PlanRequest made;
    made.request.input = folder.path("model.yaml");
    made.request.machines.cluster = folder.path("cluster.yaml");
    made.request.machines.profile = "h100-400g";
    made.request.algorithms = pick(2) == 0 ? "int8block,int4block,bf16" : "onebit,fp16";
    made.request.evaluations = 30;
    made.schedules = {schedule};
    return made;
  }

  int pick(int count) { return static_cast<int>(draws_() % static_cast<unsigned>(count)); }

  const tests::TemporaryFolder folder;

 private:
  double between(double low, double high) {
    return std::uniform_real_distribution(low, high)(draws_);
  }

  std::mt19937 draws_;
};

TEST_CASE("no row beats the plan of a verdict in time and memory, and gives up no more", "[slow]") {
  int named = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    RandomJob job(seed);
    const char* const schedule = job.pick(4) == 0 ? "local(steps=10)" : "fsdp(reshard=false)";
    CAPTURE(seed, schedule);
    const auto planned = plan(job.request(schedule), {});
    const planner::Advice& advice = planned->advice;
    const planner::Problem& problem = *advice.problem;
    const double time_s = advice.comparison.planned_s.value();
    const auto bytes = planner::memory_of(problem, advice.found.plan).total();
    const planner::Coarseness given_up = planner::coarseness_of(problem, advice.found.plan);
    for (const planner::Baseline& row : advice.comparison.baselines) {
      if (!row.iteration_s || row.row().title.empty()) continue;
      const bool beats = *row.iteration_s < time_s * (1 - problem.tolerance) &&
                         row.memory.total() <= bytes &&
                         !(given_up < planner::coarseness_of(problem, row.plan));
      if (!beats) continue;
      CAPTURE(row.name, *row.iteration_s, time_s, advice.verdict.sentence);
      CHECK(advice.verdict.sentence.find(row.row().title) != std::string::npos);
      ++named;
    }
  }
  CHECK(named > 0);  // else nothing was tested
}

TEST_CASE("activations take what a GPU has for states") {
  const tests::TemporaryFolder folder;
  const auto model = [&](const char* activations) {
    io::write_file(folder.path("model.yaml"), [&](std::ostream& out) {
      out << "name: m\nforward: 10ms\nactivations: " << activations
          << "\ngradients:\n- {name: l.1.weight, elements: 100000000, ready: 10ms}\n"
             "- {name: l.0.weight, elements: 100000000, ready: 20ms}\n";
    });
    return Document{{"request", "plan"},  {"input", folder.path("model.yaml")},
                    {"nnodes", 4},        {"profile", "h100-100g"},
                    {"schedule", "BEST"}, {"gpu_memory", "8GB"},
                    {"evaluations", 10}};
  };
  const auto left_out = [](const Document& plan) { return plan.find("left_out")->items()->size(); };
  // DDP keeps 16 bytes for each of 200 million parameters, 3.2 GB of a GPU's 8 GB. In the other 4.8
  // GB, activations of 4 GB fit, but not those of 5 GB.
  CHECK(left_out(answer(model("4GB"), {})) == 0);
  CHECK(left_out(answer(model("{l.0: 2.5GB, l.1: 2.5GB}"), {})) == 1);
  Document said = model("4GB");
  said["activation_memory"] = "5GB";
  CHECK(left_out(answer(said, {})) == 1);
  CHECK_THROWS_WITH(answer(model("-1GB"), {}), Catch::Contains("model.yaml:3"));
}

TEST_CASE("one job in two notations has one DDP in all outputs") {
  const tests::TemporaryFolder folder;
  io::write_file(folder.path("hosts.yaml"), [](std::ostream& out) {
    out << "nodes: 2\ngpus_per_node: 4\ngpu_link: {bandwidth: 200GB/s, overhead: 5us}\n"
           "link: {bandwidth: 10Gbps, latency: 10us, overhead: 10us}\n";
  });
  io::write_file(folder.path("gpus.yaml"), [](std::ostream& out) {
    out << "nodes: 8\nnodes_per_host: 4\nhost_link: {bandwidth: 200GB/s, overhead: 5us}\n"
           "link: {bandwidth: 10Gbps, latency: 10us, overhead: 10us}\n";
  });
  std::vector<double> times;
  for (const char* cluster : {"hosts.yaml", "gpus.yaml"}) {
    for (const char* topology : {"PS", "RING", "ALLREDUCE"}) {
      Document request = {{"request", "plan"},
                          {"input", "vgg19"},
                          {"profile", "a100-10g"},
                          {"compute_time", "600ms"},
                          {"cluster", folder.path(cluster)},
                          {"topology", topology},
                          {"algorithm", "none"},
                          {"evaluations", 20}};
      times.push_back(answer(request, {}).find("baselines")->find("ddp")->number().value());
      request["schedule"] = Document::list({"ddp", "fsdp"});
      const Document both = answer(request, {});
      times.push_back(
          both.find("schedules")->items()->front().find("predicted_iteration_s")->number().value());
      times.push_back(both.find("baselines")->find("ddp")->number().value());
    }
  }
  for (const double time_s : times) CHECK(time_s == Approx(times.front()).epsilon(1e-9));
}

}  // namespace
}  // namespace hipress::requests
