// Tests how the planner uses a pilot's measurements.

#include "planner/problem/learning.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/document.hpp"
#include "io/error.hpp"
#include "planner/problem/pilot_pictures.hpp"
#include "planner/problem/problem.hpp"
#include "requests/request.hpp"

namespace hipress::planner {
namespace {

using Catch::Matchers::Contains;
using io::Document;

/// A pilot's file, removed at the end of the test.
class PilotFile {
 public:
  explicit PilotFile(const std::string& rows, const std::string& errors = "errors: []\n") {
    std::ofstream(path)
        << "schema: 1\nscript: [train.py]\nranks: 2\nsteps: 400\nseeds: 1\nratios:\n"
        << rows << errors;
  }
  ~PilotFile() { std::filesystem::remove(path); }
  const std::string path =
      (std::filesystem::temp_directory_path() / ("pilot" + std::to_string(::getpid()) + ".yaml"))
          .string();
};

std::string row(const std::string& plan, double ratio, double p10, double p90) {
  return "  - {plan: \"" + plan + "\", ratio: " + std::to_string(ratio) +
         ", p10: " + std::to_string(p10) + ", p90: " + std::to_string(p90) +
         ", after: 400, runs: 1}\n";
}

models::Model two_gradients() {
  models::Model model;
  model.gradients = {{.name = "first", .elements = 300}, {.name = "last", .elements = 100}};
  return model;
}

/// Plan that compresses the first gradient by algorithm `first`, and the last by `last`; -1: raw.
casync::Plan plan_of(std::int8_t first, std::int8_t last) {
  casync::Plan plan = {.topology = "ps",
                       .nodes = 2,
                       .algorithms = {algorithm("onebit"), algorithm("int4block")},
                       .decisions = {{.algorithm = first}, {.algorithm = last}}};
  return plan;
}

}  // namespace

TEST_CASE("steps of a plan are its algorithms', by what each gradient loses") {
  const std::string rows = row("onebit", 3, 2, 5) + row("int4block", 1.2, 1.1, 1.4);
  const models::Model model = two_gradients();
  SECTION("by elements, where the pilot has no errors") {
    const PilotFile file(rows);
    const Learning learning = read_pilot(file.path);
    CHECK(learning.steps == 400);
    CHECK(learning.of(model, plan_of(casync::kRaw, casync::kRaw))->ratio == 1);
    CHECK(learning.of(model, plan_of(0, 0))->ratio == Approx(3));
    CHECK(learning.of(model, plan_of(1, 1))->ratio == Approx(1.2));
    // onebit (3/4 of the elements) adds 2 steps per DDP step, int4block (1/4) 0.2: 1 + 1.5 + 0.05.
    const StepsRatio mixed = *learning.of(model, plan_of(0, 1));
    CHECK(mixed.ratio == Approx(2.55));
    // The same means of the rows' p10 and p90 add 0.775 and 3.1. As no pilot ran this mix, the
    // former is divided, and the latter multiplied, by 2.5.
    CHECK(mixed.p10 == Approx(1 + 0.775 / 2.5));
    CHECK(mixed.p90 == Approx(1 + 3.1 * 2.5));
  }
  SECTION("by squared errors, and a little by size") {
    const PilotFile file(
        rows,
        "errors:\n  - {plan: onebit, gradient: first, step: 1, error: 1, error_with_residual: 0.5, "
        "norm: 2}\n  - {plan: onebit, gradient: last, step: 1, error: 1, error_with_residual: 1, "
        "norm: 3}\n");
    const Learning learning = read_pilot(file.path);
    const double first = 0.25 * std::pow(300, 0.1), last = std::pow(100, 0.1);
    CHECK(learning.of(model, plan_of(0, casync::kRaw))->ratio ==
          Approx(1 + 2 * first / (first + last)));
    CHECK(learning.of(model, plan_of(casync::kRaw, 0))->ratio ==
          Approx(1 + 2 * last / (first + last)));
    CHECK(learning.of(model, plan_of(0, 0))->p90 == Approx(5));  // p90 of the pilot's row
  }
  SECTION("a plan file that was piloted has its own, and local updates have none but that") {
    const PilotFile file(rows + row("local.yaml", 1.5, 1.4, 1.6));
    const Learning learning = read_pilot(file.path);
    casync::Plan local = plan_of(casync::kRaw, casync::kRaw);
    local.schedule = casync::Schedule::parse("local(steps=8)");
    CHECK_FALSE(learning.of(model, local));
    CHECK(learning.of(model, local, "local.yaml")->ratio == Approx(1.5));
    CHECK(learning.algorithms() == std::vector<std::string>{"int4block", "onebit"});
  }
}

TEST_CASE("pictures are of a pilot's losses and errors") {
  const PilotFile file(
      row("onebit", 3, 2, 5),
      "errors:\n  - {plan: onebit, gradient: first, step: 1, error: 0.3, error_with_residual: 1, "
      "norm: 2}\n  - {plan: onebit, gradient: first, step: 9, error: 0.4, error_with_residual: 1, "
      "norm: 3, residual: 0.5}\n  - {plan: x.yaml, gradient: first, step: 9, error: 0.4, "
      "error_with_residual: 1, norm: 3}\ncurve:\n  - {step: 1, loss: 2.5}\n  - {step: 400, loss: "
      "-1}\n");
  CHECK(read_pilot(file.path).rows.contains("onebit"));
  const PilotPictures pictures = read_pilot_pictures(file.path);
  REQUIRE(pictures.curve.size() == 2);
  CHECK(pictures.curve[1].step == 400);
  CHECK(pictures.curve[1].loss == -1);
  REQUIRE(pictures.errors.size() == 1);
  // Root mean square of 0.3 and 0.4.
  CHECK(pictures.errors.at("onebit").at("first") == Approx(std::sqrt(0.125)));
}

TEST_CASE("algorithms are searched with those that slow learning no more") {
  const PilotFile file(row("onebit", 3, 2, 5) + row("int4block", 1.2, 1.1, 1.4) +
                       row("fp16", 1, 1, 1) + row("int8block", 1.004, 1, 1.1) +
                       "  - {plan: terngrad, ratio: never, runs: 1}\n");
  const Learning learning = read_pilot(file.path);
  using Lists = std::vector<std::vector<std::string>>;
  CHECK(learning.bounded({"onebit", "int8block", "fp16", "int4block"}) ==
        Lists{{"int8block", "fp16"},
              {"int8block", "fp16", "int4block"},
              {"onebit", "int8block", "fp16", "int4block"}});
  CHECK(learning.known({"terngrad", "onebit", "tbq"}) == std::vector<std::string>{"onebit"});
  CHECK(learning.never == std::vector<std::string>{"terngrad"});
}

TEST_CASE("the plan of a pilot is the one that has DDP's loss soonest") {
  const auto plan = [](const std::string& rows) {
    const PilotFile file(rows);
    const Document request = {
        {"request", "plan"},          {"input", "vgg19"},  {"profile", "v100-100g"},
        {"bandwidth", "1Gbps"},       {"nnodes", 4},       {"evaluations", 20},
        {"output", "unwritten.yaml"}, {"pilot", file.path}};
    Document made = requests::answer(request, {});
    std::filesystem::remove("unwritten.yaml");
    return made;
  };
  // onebit has the shortest step. It does not pay with a steps ratio of 30, but with one of 1.3.
  const Document slow = plan(row("onebit", 30, 29, 31) + row("int4block", 1.2, 1.1, 1.4));
  const Document fast = plan(row("onebit", 1.3, 1.2, 1.4) + row("int4block", 1.2, 1.1, 1.4));
  CHECK(slow.find("learning")->find("steps_ratio")->number() <= 1.2 + 1e-9);
  CHECK(fast.find("predicted_iteration_s")->number() <
        slow.find("predicted_iteration_s")->number());
  const Document& learning = *fast.find("learning");
  const double ratio = *learning.find("steps_ratio")->number();
  const Document& mine = *learning.find("paces")->items()->begin();
  CHECK(*mine.find("plan")->text() == "this plan");
  CHECK(mine.find("to_loss_s")->number() ==
        Approx(400 * ratio * *fast.find("predicted_iteration_s")->number()));
  CHECK(mine.find("to_loss_s_p10")->number() < mine.find("to_loss_s")->number());
  CHECK(mine.find("to_loss_s")->number() < mine.find("to_loss_s_p90")->number());
  CHECK(learning.find("time_to_loss_s")->number() ==
        Approx(400 * ratio * *fast.find("predicted_iteration_s")->number()));
  CHECK(learning.find("today_to_loss_s")->number() ==
        Approx(400 * *fast.find("baselines")->find("ddp")->number()));
  CHECK_THAT(*fast.find("verdict")->text(), Contains("reaches the loss that DDP has after 400"));
}

TEST_CASE("without a pilot, what may slow learning is asked for, and named") {
  const auto plan = [](const Document& more) {
    Document request = {{"request", "plan"},    {"input", "vgg19"}, {"profile", "v100-100g"},
                        {"bandwidth", "1Gbps"}, {"nnodes", 4},      {"evaluations", 20}};
    request.update(more);
    return requests::answer(request, {});
  };
  const Document usual = plan(Document::object());
  CHECK(usual.find("advice")->text()->find("compress") == 0);
  CHECK(usual.find("verdict")->text()->find("learning") == std::string::npos);
  CHECK_THAT(*plan({{"algorithm", "onebit"}}).find("verdict")->text(),
             Contains("learning not measured: run hipress.pilot"));
  CHECK_THAT(*plan({{"coarsest", "onebit"}}).find("verdict")->text(),
             Contains("learning not measured: run hipress.pilot"));
}

TEST_CASE("files that are no pilot's are refused with their line") {
  const auto refusal = [](const std::string& rows) {
    const PilotFile file(rows);
    try {
      read_pilot(file.path);
    } catch (const io::InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(refusal("  []\n"), Contains(".yaml:6: ratios: no plan has a ratio"));
  CHECK_THAT(refusal("  - {plan: onebit, ratio: never}\n"), Contains("no plan has a ratio"));
  CHECK_THAT(refusal("  - {plan: onebit, ratio: -1, p10: 1, p90: 1}\n"), Contains(".yaml:7: "));
  CHECK_THAT(refusal(row("onebit", 2, 3, 4)), Contains("p10"));
  CHECK_THAT(refusal("  - {plam: onebit}\n"), Contains("plam"));
}

}  // namespace hipress::planner
