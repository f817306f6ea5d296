// Every question of hipress-plan, of every kind of job: docs/planner.md has the table.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "io/document.hpp"
#include "io/file.hpp"
#include "requests/request.hpp"

namespace hipress::requests {
namespace {

using io::Document;

/// A folder that is gone at the end of the test.
struct Folder {
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("hipress_questions_test_" + std::to_string(::getpid()));
};

/// A small job of the schedule, and its answer to one more field.
Document ask(const char* schedule, const Document& question) {
  Document request = {{"request", "plan"},
                      {"input", "vgg19"},
                      {"profile", "v100_100g"},
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
  const Folder folder;
  SECTION("the plan itself") {
    const Document plan = ask(schedule, {{"output", folder / "plan.yaml"}});
    CHECK(*plan.find("schedule")->text() == schedule);
    CHECK(plan.find("predicted_iteration_s")->number() > 0);
    CHECK(plan.find("predicted_iteration_s_p10")->number() <=
          plan.find("predicted_iteration_s")->number());
    CHECK(plan.find("advice")->text() != nullptr);
    CHECK(plan.find("peak_memory_bytes")->number() > 0);
    CHECK(plan.find("baselines")->members()->size() > 2);
    const Document simulated = answer({{"request", "simulate"},
                                       {"input", "vgg19"},
                                       {"profile", "v100_100g"},
                                       {"bandwidth", "5Gbps"},
                                       {"compute_time", "200ms"},
                                       {"nnodes", 4},
                                       {"plan", folder / "plan.yaml"}},
                                      {});
    CHECK(*simulated.find("iteration_s")->number() ==
          Approx(*plan.find("predicted_iteration_s")->number()).epsilon(1e-9));
    // What a plan is asked, it can be asked once it is written, too.
    Document request = {{"plan", folder / "plan.yaml"}, {"explain", true}};
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
    ask(schedule, {{"output", folder / "plan.yaml"}, {"algorithm", "fp16"}, {"write", "fastest"}});
    const Document made = ask(schedule, {{"compare", folder / "plan.yaml"}, {"write", "fastest"}});
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

}  // namespace
}  // namespace hipress::requests
