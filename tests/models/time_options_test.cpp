#include "models/time_options.hpp"

#include <catch2/catch.hpp>

#include "tests/io/temporary_folder.hpp"

using namespace hipress::models;
using Catch::Contains;
using hipress::tests::complaint;

namespace {

/// A model of two gradients, of 1 and 3 elements, in the order of backward.
Model untimed() {
  Model model;
  model.gradients = {{.name = "a", .elements = 1}, {.name = "b", .elements = 3}};
  return model;
}

Model timed() {
  Model model = untimed();
  model.gradients[0].ready_s = 20e-3;
  model.gradients[1].ready_s = 40e-3;
  return model;
}

}  // namespace

TEST_CASE("without options, a model keeps its times") {
  Model model = timed();
  CHECK(apply({}, model).empty());
  CHECK(model.gradients[1].ready_s == 40e-3);
  CHECK(model.forward_s == 0);
}

TEST_CASE("backward is spread by elements, after a third for forward") {
  Model model = untimed();
  const auto diagnostics = apply({.compute_time = "120ms"}, model);
  // Forward takes 40 ms; of backward's 80 ms the first gradient takes 1/4.
  CHECK(model.forward_s == Approx(40e-3));
  CHECK(model.gradients[0].ready_s == Approx(20e-3));
  CHECK(model.gradients[1].ready_s == Approx(80e-3));
  REQUIRE(diagnostics.size() == 2);
  CHECK(diagnostics[0] ==
        "forward is assumed to be a third of `compute_time`, 40ms, since backward has twice its "
        "FLOPs; `forward` changes that");
  CHECK(diagnostics[1] ==
        "no ready times are given: backward of 80ms is spread over the gradients in proportion to "
        "their elements, the first gradient first");
}

TEST_CASE("gradients listed as parameters are ready from the last to the first") {
  Model model = untimed();
  model.in_backward_order = false;
  const auto diagnostics = apply({.compute_time = "120ms", .forward = "20ms"}, model);
  // The last gradient takes 3/4 of backward's 100 ms, then the first one the rest.
  CHECK(model.forward_s == Approx(20e-3));
  CHECK(model.gradients[1].ready_s == Approx(75e-3));
  CHECK(model.gradients[0].ready_s == Approx(100e-3));
  REQUIRE(diagnostics.size() == 1);
  CHECK_THAT(diagnostics[0], Contains("the last gradient first"));
}

TEST_CASE("gradients of a bucket are ready together after backward is spread") {
  Model model = untimed();
  model.gradients[0].bucket = model.gradients[1].bucket = 0;
  apply({.compute_time = "100ms", .forward = "0ms"}, model);
  CHECK(model.gradients[0].ready_s == Approx(100e-3));
  CHECK(model.gradients[1].ready_s == Approx(100e-3));
}

TEST_CASE("FLOPs go before elements, if all gradients say them") {
  Model model = untimed();
  model.gradients[0].flops = 9e9;
  apply({.compute_time = "100ms", .forward = "0ms"}, model);
  CHECK(model.gradients[0].ready_s == Approx(25e-3));  // by elements: one lacks FLOPs
  model = untimed();
  model.gradients[0].flops = 9e9;
  model.gradients[1].flops = 1e9;
  const auto diagnostics = apply({.compute_time = "100ms", .forward = "0ms"}, model);
  CHECK(model.gradients[0].ready_s == Approx(90e-3));
  CHECK_THAT(diagnostics.at(0), Contains("in proportion to their FLOPs"));
}

TEST_CASE("ready times that a model has keep their proportions") {
  Model model = timed();
  SECTION("with its forward") {
    model.forward_s = 20e-3;  // of 60 ms in total, which become 30 ms
    const auto diagnostics = apply({.compute_time = "30ms"}, model);
    CHECK(model.forward_s == Approx(10e-3));
    CHECK(model.gradients[0].ready_s == Approx(10e-3));
    CHECK(model.gradients[1].ready_s == Approx(20e-3));
    CHECK(diagnostics.at(0) == "the model's ready times are scaled from 40ms to 20ms of backward");
  }
  SECTION("with a given one") {
    apply({.compute_time = "100ms", .forward = "20ms"}, model);
    CHECK(model.forward_s == Approx(20e-3));
    CHECK(model.gradients[1].ready_s == Approx(80e-3));
  }
}

TEST_CASE("option --forward alone gives a CSV what it cannot say") {
  Model model = timed();
  CHECK(apply({.forward = "7ms"}, model).empty());
  CHECK(model.forward_s == 7e-3);
  CHECK(model.gradients[1].ready_s == 40e-3);
}

TEST_CASE("option --compute-time is of all micro-steps, --forward of one") {
  SECTION("without times, a third is forward") {
    Model model = untimed();
    model.micro_steps = 4;
    apply({.compute_time = "120ms"}, model);
    CHECK(model.forward_s == Approx(10e-3));
    CHECK(model.gradients[1].ready_s == Approx(20e-3));
    CHECK(before_backward_s(model) + backward_s(model) == Approx(120e-3));
  }
  SECTION("times that a model has keep their proportions") {
    Model model = timed();
    model.micro_steps = 2;
    model.forward_s = 30e-3;
    model.optimizer_s = 20e-3;  // of 2 · (30 + 40) + 20 = 160 ms, which become 80 ms
    apply({.compute_time = "80ms"}, model);
    CHECK(model.forward_s == Approx(15e-3));
    CHECK(model.optimizer_s == Approx(10e-3));
    CHECK(backward_s(model) == Approx(20e-3));
  }
  SECTION("a given forward leaves the optimizer its time") {
    Model model = timed();
    model.micro_steps = 2;
    model.optimizer_s = 20e-3;
    apply({.compute_time = "100ms", .forward = "10ms"}, model);  // 2 · (10 + 30) + 20
    CHECK(model.forward_s == Approx(10e-3));
    CHECK(model.optimizer_s == 20e-3);
    CHECK(backward_s(model) == Approx(30e-3));
  }
  SECTION("of a single one, it is the optimizer's too") {
    Model model = timed();
    model.optimizer_s = 20e-3;
    apply({.forward = "10ms"}, model);
    CHECK(before_backward_s(model) == 10e-3);
  }
  SECTION("what no step can take is refused") {
    Model model = timed();
    model.micro_steps = 3;
    CHECK_THAT(complaint([&] { apply({.forward = "500000s"}, model); }),
               Catch::StartsWith("`forward` must leave a step of 3 micro-steps at most 1e+06s"));
  }
}

TEST_CASE("bad times are refused with the option's name") {
  const auto refusal = [](const TimeOptions& options) {
    Model model = untimed();
    return complaint([&] { apply(options, model); });
  };
  CHECK_THAT(refusal({.compute_time = "120"}),
             Contains("`compute_time` must be a duration with unit"));
  CHECK_THAT(refusal({.forward = "-1ms"}), Contains("`forward` must be zero or positive"));
  CHECK(refusal({.forward = "1e7s"}) == "`forward` must be at most 1e+06s, got '1e7s'");
  CHECK(refusal({.compute_time = "10ms", .forward = "10ms"}) ==
        "`compute_time` covers forward and backward together, so it must be more than forward, "
        "10ms, got 10ms");
  CHECK_THAT(refusal({.compute_time = "0ms"}), Contains("must be more than forward"));
}

TEST_CASE("it is known what a model says nothing of") {
  CHECK(missing_times(untimed()) == MissingTimes::kReady);
  Model model = timed();
  CHECK(missing_times(model) == MissingTimes::kForward);
  model.forward_s = 20e-3;
  CHECK(missing_times(model) == MissingTimes::kNone);
  model = untimed();
  apply({.compute_time = "120ms"}, model);
  CHECK(missing_times(model) == MissingTimes::kNone);
}

TEST_CASE("files say in which order backward goes through their gradients, and FLOPs") {
  const hipress::tests::TemporaryFolder folder;
  CHECK_FALSE(read_model(folder.file("a.txt", "a,1\n")).in_backward_order);
  const Model yaml = read_model(
      folder.file("a.yaml", "name: x\ngradients: [{name: a, elements: 1, flops: 2e9}]\n"));
  CHECK(yaml.in_backward_order);
  CHECK(yaml.gradients[0].flops == 2e9);
}
