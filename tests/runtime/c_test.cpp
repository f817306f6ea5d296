// Tests the C interface with two threads as the ranks of a job. tests/package has a program in C.
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/hipress.h"

using Catch::Contains;
using Catch::Equals;

namespace {

const std::int64_t kShape[] = {20, 5};
const hipress_gradient kGradients[] = {{"a", 100, HIPRESS_FLOAT32, 2, kShape, 0},
                                       {"b", 3, HIPRESS_BFLOAT16, 0, nullptr, 0}};

hipress_options options_of(int rank, int ranks, const char* rendezvous) {
  hipress_options options;
  hipress_options_init(&options);
  options.rank = rank;
  options.ranks = ranks;
  options.rendezvous = rendezvous;
  return options;
}

std::string last_error() { return hipress_last_error(); }

/// Stores a number in an enumeration that has no such enumerator, as a C program can.
void leave(int number, hipress_type& type) {
  static_assert(sizeof type == sizeof number);
  std::memcpy(&type, &number, sizeof number);
}

}  // namespace

TEST_CASE("C: ranks average, each in an order of its own") {
  std::string problems[2];
  const auto run = [&](int rank) {
    std::string& problem = problems[rank];
    const hipress_options options = options_of(rank, 2, "local:test-c-average");
    hipress_engine* engine = nullptr;
    if (hipress_open(&options, kGradients, 2, &engine) != HIPRESS_OK) {
      problem = last_error();
      return;
    }
    std::vector<float> a(100, static_cast<float>(2 * rank));       // 0 and 2; the mean is 1
    std::vector<std::uint16_t> b(3, rank == 0 ? 0x3f80 : 0x4040);  // 1 and 3; the mean is 2, 0x4000
    hipress_work* works[2] = {};
    for (int k = 0; k < 2; ++k) {
      const auto g = static_cast<std::uint32_t>(rank == 0 ? k : 1 - k);
      const hipress_tensor tensor = g == 0
                                        ? hipress_tensor{a.data(), 100, HIPRESS_FLOAT32, 0, nullptr}
                                        : hipress_tensor{b.data(), 3, HIPRESS_BFLOAT16, 0, nullptr};
      if (hipress_submit(engine, g, &tensor, &works[g]) != HIPRESS_OK) problem += last_error();
    }
    for (hipress_work* const work : works) {
      if (hipress_wait(work) != HIPRESS_OK) problem += last_error();
    }
    if (a != std::vector<float>(100, 1.0f)) problem += "a is wrong";
    if (b != std::vector<std::uint16_t>(3, 0x4000)) problem += "b is wrong";
    hipress_close(engine);
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  CHECK(problems[0].empty());
  CHECK(problems[1].empty());
}

namespace {

/// Result of a rank of an automatic job.
struct Automatic {
  hipress_status status = HIPRESS_FAILED;
  std::string said;  ///< notes, or the error
  std::vector<float> mean;
  double bandwidth = 0, latency_s = 0;  ///< measured again, by hipress_measure_links()
};

/// Runs an automatic job of two ranks. Gradient "b", ready after `ready_s`, has the values 0 and 2.
std::vector<Automatic> average_automatically(const char* job, const char* profile, double ready_s) {
  constexpr std::int64_t kElements = 1 << 16;
  std::vector<Automatic> made(2);
  const auto run = [&](int rank) {
    Automatic& mine = made[static_cast<std::size_t>(rank)];
    hipress_options options = options_of(rank, 2, job);
    options.automatic = 1;
    options.profile = profile;
    const hipress_gradient gradients[] = {{"a", 64, HIPRESS_FLOAT32, 0, nullptr, ready_s / 2},
                                          {"b", kElements, HIPRESS_FLOAT32, 0, nullptr, ready_s}};
    hipress_engine* engine = nullptr;
    mine.status = hipress_open(&options, gradients, 2, &engine);
    mine.said = engine == nullptr ? last_error() : hipress_notes(engine);
    if (engine == nullptr) return;
    std::vector<float> a(64, 1), b(kElements, static_cast<float>(2 * rank));
    const std::uint32_t numbers[] = {0, 1};
    const hipress_tensor tensors[] = {{a.data(), 64, HIPRESS_FLOAT32, 0, nullptr},
                                      {b.data(), kElements, HIPRESS_FLOAT32, 0, nullptr}};
    hipress_work* works[2] = {};
    int done = 0;
    mine.status = hipress_submit_many(engine, 2, numbers, tensors, works);
    if (mine.status == HIPRESS_OK) mine.status = hipress_wait_all(works, 2, 60, &done);
    if (done == 0) mine.said += "; not done";
    mine.mean = b;
    if (hipress_measure_links(engine, &mine.bandwidth, &mine.latency_s) != HIPRESS_OK) {
      mine.said += last_error();
    }
    hipress_close(engine);
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  return made;
}

}  // namespace

TEST_CASE("C: a job chooses its plan") {
  const std::vector<Automatic> ranks =
      average_automatically("local:test-c-automatic", "v100-100g", 0.01);
  for (const Automatic& rank : ranks) {
    CAPTURE(rank.said);
    REQUIRE(rank.status == HIPRESS_OK);
    CHECK_THAT(rank.said, Catch::StartsWith("chosen here: ") && Contains("; predicted: ") &&
                              Contains(" times (") && Contains("; links: "));
    CHECK(rank.said == ranks[0].said);
    CHECK(rank.mean == ranks[0].mean);
    // int8block errs by up to 1/254 of a block's largest number, 2, in each of at most 3 encodes.
    for (const int i : {0, 1 << 15, (1 << 16) - 1}) {
      CHECK(rank.mean[static_cast<std::size_t>(i)] == Approx(1).margin(3 * 2.0 / 254));
    }
    CHECK(rank.bandwidth > 0);
    CHECK(rank.bandwidth == ranks[0].bandwidth);
    CHECK(rank.latency_s == ranks[0].latency_s);
  }
}

TEST_CASE("C: without ready times, a job that chooses its plan compresses nothing") {
  for (const Automatic& rank : average_automatically("local:test-c-untimed", "v100-100g", 0)) {
    REQUIRE(rank.status == HIPRESS_OK);
    CHECK_THAT(rank.said, Contains("chosen here: no compression") && Contains("ready_s"));
    CHECK(rank.mean == std::vector<float>(1 << 16, 1.0f));
  }
}

TEST_CASE("C: all ranks are told why a plan cannot be chosen") {
  for (const Automatic& rank : average_automatically("local:test-c-no-profile", "no-such", 0.01)) {
    CHECK(rank.status == HIPRESS_INVALID);
    CHECK_THAT(rank.said, Contains("no-such"));
  }
}

TEST_CASE("C: a plan is given or chosen") {
  hipress_options options = options_of(0, 1, "local:test-c-alone");
  hipress_engine* engine = nullptr;
  options.automatic = 1;
  options.plan = "onebit";
  CHECK(hipress_open(&options, kGradients, 2, &engine) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("plan is onebit, and automatic chooses the plan"));
  options.automatic = 0;
  options.profile = "v100-100g";
  CHECK(hipress_open(&options, kGradients, 2, &engine) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("profile is for automatic"));
  // One rank alone has nothing to choose, and no links.
  options.automatic = 1;
  options.plan = "none";
  REQUIRE(hipress_open(&options, kGradients, 2, &engine) == HIPRESS_OK);
  double bandwidth = 0, latency_s = 0;
  CHECK(hipress_measure_links(engine, &bandwidth, &latency_s) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("no links"));
  CHECK(hipress_measure_links(engine, nullptr, &latency_s) == HIPRESS_INVALID);
  hipress_close(engine);
}

TEST_CASE("C: speedups in pairs of blocks are judged") {
  const auto verdict_of = [](const std::vector<double>& speedups) {
    hipress_verdict verdict = HIPRESS_UNDECIDED;
    REQUIRE(hipress_judge(speedups.data(), speedups.size(), &verdict) == HIPRESS_OK);
    return verdict;
  };
  CHECK(verdict_of({}) == HIPRESS_UNDECIDED);
  CHECK(verdict_of({1.5}) == HIPRESS_UNDECIDED);
  CHECK(verdict_of({1.5, 1.54}) == HIPRESS_FASTER);
  CHECK(verdict_of({0.7}) == HIPRESS_NOT_FASTER);
  hipress_verdict verdict = HIPRESS_UNDECIDED;
  for (const double wrong : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    CHECK(hipress_judge(&wrong, 1, &verdict) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("give positive numbers"));
  }
  CHECK(hipress_judge(nullptr, 1, &verdict) == HIPRESS_INVALID);
  CHECK(hipress_judge(nullptr, 0, nullptr) == HIPRESS_INVALID);
}

TEST_CASE("C: the kept profile of this machine has one name for each list of algorithms") {
  const char* const found = std::getenv("HOME");
  const std::string home = found == nullptr ? "/" : found;
  setenv("HIPRESS_CACHE", "/somewhere", 1);
  const auto path_of = [](const char* algorithms, int ranks) {
    char* path = nullptr;
    REQUIRE(hipress_cached_profile(algorithms, ranks, &path) == HIPRESS_OK);
    const std::string text = path;
    hipress_free_result(path);
    return text;
  };
  const std::string usual = path_of("int8block,fp16", 4);
  CHECK_THAT(usual, Catch::StartsWith("/somewhere/profile-") && Catch::EndsWith(".yaml"));
  CHECK(path_of("int8block,fp16", 4) == usual);
  CHECK(path_of("int8block,fp16", 100) == usual);  // links are measured between at most 4 ranks
  CHECK(path_of("int8block,fp16", 2) != usual);
  CHECK(path_of("fp16", 4) != usual);
  char* path = nullptr;
  CHECK(hipress_cached_profile(nullptr, 4, &path) == HIPRESS_INVALID);
  CHECK(hipress_cached_profile("fp16", 0, &path) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("ranks is 0; give 1 or more"));
  for (const char* const name : {"HIPRESS_CACHE", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
  CHECK(hipress_cached_profile("fp16", 4, &path) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("set HIPRESS_CACHE"));
  setenv("HOME", home.c_str(), 1);
}

TEST_CASE("C: wrong arguments are refused, and say what would be right") {
  hipress_engine* engine = nullptr;
  hipress_options options = options_of(0, 1, "");
  const auto open = [&](const hipress_gradient* gradients, std::size_t count) {
    return hipress_open(&options, gradients, count, &engine);
  };
  SECTION("options that were not set") {
    options = {};
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("hipress_options_init"));
  }
  SECTION("no options, no place for the engine") {
    CHECK(hipress_open(nullptr, kGradients, 2, &engine) == HIPRESS_INVALID);
    CHECK(last_error() == "options is null");
    CHECK(hipress_open(&options, kGradients, 2, nullptr) == HIPRESS_INVALID);
    CHECK(last_error() == "engine is null");
  }
  SECTION("a rank beyond the job") {
    options.rank = 1;
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("rank 1 of 1 ranks"));
  }
  SECTION("a timeout of nothing") {
    options.timeout_s = 0;
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("timeout_s is 0"));
  }
  SECTION("a secret that is too short") {
    options.secret = "abc";
    options.secret_bytes = 3;
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("3 bytes") && Contains("16"));
    options.secret_bytes = static_cast<std::size_t>(-1);
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("give 16 to 65536, or none"));
  }
  SECTION("no gradients, one without name, one of another type") {
    CHECK(open(nullptr, 0) == HIPRESS_INVALID);
    const hipress_gradient nameless = {nullptr, 3, HIPRESS_FLOAT32, 0, nullptr, 0};
    CHECK(open(&nameless, 1) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("no name"));
    hipress_gradient strange = {"x", 3, HIPRESS_FLOAT32, 0, nullptr, 0};
    leave(5, strange.type);
    CHECK(open(&strange, 1) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("type 5"));
  }
  SECTION("a shape that is not the gradient's, or none") {
    const auto refusal = [&](std::int64_t elements, int dimensions, const std::int64_t* shape) {
      const hipress_gradient gradient = {"x", elements, HIPRESS_FLOAT32, dimensions, shape, 0};
      CHECK(open(&gradient, 1) == HIPRESS_INVALID);
      return last_error();
    };
    CHECK_THAT(refusal(99, 2, kShape),
               Contains("gradient 'x': shape 20x5 has 100 elements, but elements says 99"));
    const std::int64_t bad[] = {-20, -5};
    CHECK_THAT(refusal(100, 2, bad), Contains("'x'") && Contains("at least 1, got -20"));
    CHECK(refusal(100, 2, nullptr) ==
          "gradient 'x': 2 dimensions: shape is null; point it at them, or set dimensions to 0");
    for (const int dimensions : {-1, 17}) {
      CHECK_THAT(refusal(100, dimensions, kShape),
                 Contains("dimensions: give 1 to 16, or 0 if the shape is unknown"));
    }
  }
  SECTION("numbers that are negative or beyond any list") {
    const auto negative = static_cast<std::size_t>(-1);
    CHECK(open(kGradients, negative) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("which no list of gradients can have"));
    for (const std::int64_t elements : {std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
      const hipress_gradient gradient = {"x", elements, HIPRESS_FLOAT32, 0, nullptr, 0};
      CHECK(open(&gradient, 1) == HIPRESS_INVALID);
      CHECK_THAT(last_error(), Contains("gradient 'x': elements must be from 1 to 2^48"));
    }
    options.ranks = INT32_MIN;
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    options.ranks = INT32_MAX;
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("at most 4096"));
    options.ranks = 1;
    options.group_bytes = -1;
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("group_bytes is -1"));
  }
  SECTION("names that stand for nothing") {
    options.transport = "pigeons";
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("tcp"));
    options.transport = "tcp";
    options.plan = "no-such-plan";
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("no-such-plan"));
  }
  SECTION("topologies whose result is no mean") {
    for (const char* const topology : {"chain", "binomial", "scatter_allgather"}) {
      CAPTURE(topology);
      options.topology = topology;
      CHECK(open(kGradients, 2) == HIPRESS_INVALID);
      CHECK_THAT(last_error(), Contains(topology) && Contains("broadcast") && Contains("ring"));
    }
  }
  SECTION("a GPU that there is not") {
    options.device = 1000;
    CHECK(open(kGradients, 2) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("GPU") || Contains("CUDA"));
  }
  CHECK(engine == nullptr);
  CHECK(hipress_culprit() == -1);
}

TEST_CASE("C: works are waited for, asked, or let go") {
  hipress_options options = options_of(0, 1, "local:test-c-alone");
  options.transport = "memory";
  hipress_engine* engine = nullptr;
  REQUIRE(hipress_open(&options, kGradients, 2, &engine) == HIPRESS_OK);
  std::vector<float> values(100, 1.0f);
  const hipress_tensor tensor = {values.data(), 100, HIPRESS_FLOAT32, 0, nullptr};
  hipress_work* work = nullptr;
  CHECK(hipress_submit(engine, 5, &tensor, &work) == HIPRESS_INVALID);
  CHECK(hipress_submit(engine, 0, nullptr, &work) == HIPRESS_INVALID);
  CHECK(hipress_submit(nullptr, 0, &tensor, &work) == HIPRESS_INVALID);
  CHECK(hipress_submit(engine, 0, &tensor, nullptr) == HIPRESS_INVALID);
  CHECK(hipress_wait(nullptr) == HIPRESS_INVALID);
  CHECK(hipress_done(nullptr) == 0);
  hipress_release(nullptr);
  hipress_close(nullptr);
  CHECK(work == nullptr);
  REQUIRE(hipress_submit(engine, 0, &tensor, &work) == HIPRESS_OK);
  hipress_close(engine);  // waits for the running gradient
  CHECK(hipress_done(work) == 1);
  CHECK(hipress_wait(work) == HIPRESS_OK);
  CHECK(values == std::vector<float>(100, 1.0f));
}

namespace {

/// Opens a job of one rank. onebit's residuals make every mean depend on earlier gradients.
hipress_engine* open_alone(const char* rendezvous, const char* plan = "onebit") {
  hipress_options options = options_of(0, 1, rendezvous);
  options.transport = "memory";
  options.plan = plan;
  hipress_engine* engine = nullptr;
  REQUIRE(hipress_open(&options, kGradients, 2, &engine) == HIPRESS_OK);
  return engine;
}

/// Averages both gradients, with one call that submits and one that waits; returns a's mean.
std::vector<float> average_many(hipress_engine* engine) {
  std::vector<float> a(100);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 2;
  std::vector<std::uint16_t> b(3, 0x3f80);
  const std::uint32_t numbers[] = {1, 0};
  const hipress_tensor tensors[] = {{b.data(), 3, HIPRESS_BFLOAT16, 0, nullptr},
                                    {a.data(), 100, HIPRESS_FLOAT32, 0, nullptr}};
  hipress_work* works[2] = {};
  REQUIRE(hipress_submit_many(engine, 2, numbers, tensors, works) == HIPRESS_OK);
  int done = 0;
  REQUIRE(hipress_wait_all(works, 2, 30, &done) == HIPRESS_OK);
  REQUIRE(done == 1);
  CHECK(works[0] == nullptr);
  CHECK(works[1] == nullptr);
  return a;
}

}  // namespace

TEST_CASE("C: an engine goes on where another left off") {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("hipress-state-{}", ::getpid()))
          .string();
  hipress_engine* const first = open_alone("local:test-c-state-1");
  average_many(first);
  REQUIRE(hipress_save_state(first, path.c_str()) == HIPRESS_OK);
  const std::vector<float> expected = average_many(first);
  hipress_engine* const second = open_alone("local:test-c-state-2");
  REQUIRE(hipress_load_state(second, path.c_str()) == HIPRESS_OK);
  CHECK(average_many(second) == expected);
  hipress_engine* const third = open_alone("local:test-c-state-3");
  CHECK(average_many(third) != expected);  // without the saved residual

  hipress_engine* const raw = open_alone("local:test-c-state-4", "none");
  CHECK(hipress_load_state(raw, path.c_str()) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("nothing here keeps") && Contains("load it under the plan"));
  std::filesystem::resize_file(path, 50);
  CHECK(hipress_load_state(second, path.c_str()) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains(path));
  CHECK(hipress_load_state(second, nullptr) == HIPRESS_INVALID);
  CHECK(hipress_save_state(nullptr, path.c_str()) == HIPRESS_INVALID);
  CHECK(average_many(second) == average_many(first));  // refused files have changed nothing
  for (hipress_engine* const engine : {first, second, third, raw}) hipress_close(engine);
  std::filesystem::remove(path);
}

TEST_CASE("C: residuals are what is left out of the means so far") {
  const std::string plan = GENERATE("onebit", "graddrop(rho=0.2)", "dgc(rho=0.2)");
  CAPTURE(plan);
  hipress_engine* const engine = open_alone("local:test-c-residuals-1", plan.c_str());
  double squares[2] = {};
  REQUIRE(hipress_residuals(engine, squares, 2) == HIPRESS_OK);
  CHECK(squares[0] == 0);
  // A single rank's means sum to its gradients minus the residual.
  std::vector<double> left(100);
  for (int iteration = 0; iteration < 3; ++iteration) {
    const std::vector<float> mean = average_many(engine);
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[i] += static_cast<double>(i % 7) - 2 - static_cast<double>(mean[i]);
    }
  }
  REQUIRE(hipress_residuals(engine, squares, 2) == HIPRESS_OK);
  const double expected = std::inner_product(left.begin(), left.end(), left.begin(), 0.0);
  CHECK(expected > 1);
  CHECK(squares[0] == Approx(expected).epsilon(1e-4));

  CHECK(hipress_residuals(engine, squares, 1) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("count must be that of the gradients, 2, got 1"));
  CHECK(hipress_residuals(engine, nullptr, 2) == HIPRESS_INVALID);
  CHECK(hipress_residuals(nullptr, squares, 2) == HIPRESS_INVALID);
  // The residual has the scale of the gradient. After it is taken, none is left.
  std::vector<float> taken(100);
  CHECK(hipress_take_residual(engine, 0, taken.data(), 99) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("give a gradient's number, and its elements"));
  CHECK(hipress_take_residual(engine, 2, taken.data(), 100) == HIPRESS_INVALID);
  CHECK(hipress_take_residual(engine, 0, nullptr, 100) == HIPRESS_INVALID);
  CHECK(hipress_take_residual(nullptr, 0, taken.data(), 100) == HIPRESS_INVALID);
  REQUIRE(hipress_take_residual(engine, 0, taken.data(), 100) == HIPRESS_OK);
  for (std::size_t i = 0; i < left.size(); ++i) CHECK(taken[i] == Approx(left[i]).margin(1e-4));
  REQUIRE(hipress_residuals(engine, squares, 2) == HIPRESS_OK);
  CHECK(squares[0] == 0);
  hipress_engine* const raw = open_alone("local:test-c-residuals-2", "none");
  average_many(raw);
  REQUIRE(hipress_residuals(raw, squares, 2) == HIPRESS_OK);
  CHECK(squares[0] < 0);  // raw gradients have no residual
  hipress_close(raw);
  hipress_close(engine);
}

TEST_CASE("C: an iteration that was discarded leaves no trace") {
  const std::string plan = GENERATE("onebit", "tbq(tau=0.1)", "graddrop(rho=0.2)", "terngrad");
  CAPTURE(plan);
  hipress_engine* const engine = open_alone("local:test-c-discard-1", plan.c_str());
  hipress_engine* const other = open_alone("local:test-c-discard-2", plan.c_str());
  CHECK(average_many(engine) == average_many(other));
  average_many(engine);
  REQUIRE(hipress_discard(engine, nullptr, 0) == HIPRESS_OK);
  REQUIRE(hipress_discard(engine, nullptr, 0) == HIPRESS_OK);  // no iteration is left to undo
  CHECK(average_many(engine) == average_many(other));
  const std::uint32_t one[] = {0}, none[] = {7};
  CHECK(hipress_discard(engine, none, 1) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("gradient 7 is discarded; there are"));
  CHECK(hipress_discard(engine, nullptr, 1) == HIPRESS_INVALID);
  CHECK(hipress_discard(nullptr, one, 1) == HIPRESS_INVALID);

  int finite = 0;
  CHECK(hipress_all_finite(engine, &finite) == HIPRESS_OK);
  CHECK(finite == 1);
  std::vector<float> a(100, 1.0f);
  a[99] = std::numeric_limits<float>::infinity();
  const hipress_tensor tensor = {a.data(), 100, HIPRESS_FLOAT32, 0, nullptr};
  hipress_work* work = nullptr;
  REQUIRE(hipress_submit(engine, 0, &tensor, &work) == HIPRESS_OK);
  REQUIRE(hipress_wait(work) == HIPRESS_OK);
  CHECK(hipress_all_finite(engine, &finite) == HIPRESS_OK);
  CHECK(finite == 0);
  CHECK(hipress_discard(engine, one, 1) == HIPRESS_OK);
  CHECK(hipress_all_finite(engine, &finite) == HIPRESS_OK);
  CHECK(finite == 1);
  CHECK(hipress_all_finite(engine, nullptr) == HIPRESS_INVALID);
  CHECK(average_many(engine) == average_many(other));
  for (hipress_engine* const each : {engine, other}) hipress_close(each);
}

TEST_CASE("C: what is discarded after a state was loaded is the loaded state's") {
  const auto average = [](hipress_engine* engine, float scale) {
    std::vector<float> a(100);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = scale * (static_cast<float>(i % 7) - 2);
    const hipress_tensor tensor = {a.data(), 100, HIPRESS_FLOAT32, 0, nullptr};
    hipress_work* work = nullptr;
    REQUIRE(hipress_submit(engine, 0, &tensor, &work) == HIPRESS_OK);
    REQUIRE(hipress_wait(work) == HIPRESS_OK);
    return a;
  };
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("hipress-undo-{}", ::getpid()))
          .string();
  hipress_engine* const saved = open_alone("local:test-c-undo-1");
  average(saved, 3);
  REQUIRE(hipress_save_state(saved, path.c_str()) == HIPRESS_OK);
  // The second engine has other states, and has already run an iteration of the same number.
  hipress_engine* const loads = open_alone("local:test-c-undo-2");
  average(loads, 1);
  average(loads, 1);
  REQUIRE(hipress_load_state(loads, path.c_str()) == HIPRESS_OK);
  const std::uint32_t first[] = {0};
  REQUIRE(hipress_discard(loads, first, 1) == HIPRESS_OK);  // no iteration is left to undo
  average(loads, 5);
  REQUIRE(hipress_discard(loads, first, 1) == HIPRESS_OK);
  CHECK(average(loads, 2) == average(saved, 2));
  for (hipress_engine* const engine : {saved, loads}) hipress_close(engine);
  std::filesystem::remove(path);
}

TEST_CASE("C: an algorithm that does not average is announced") {
  hipress_engine* const momentum = open_alone("local:test-c-notes-1", "dgc(momentum=0.5)");
  CHECK_THAT(hipress_notes(momentum), Contains("dgc(momentum=0.5) is an optimizer of its own"));
  hipress_engine* const plain = open_alone("local:test-c-notes-2", "dgc");
  CHECK_THAT(hipress_notes(plain), Equals(""));
  CHECK_THAT(hipress_notes(nullptr), Equals(""));
  for (hipress_engine* const engine : {momentum, plain}) hipress_close(engine);
}

TEST_CASE("C: many gradients are submitted and waited for in one call") {
  hipress_engine* const engine = open_alone("local:test-c-many", "none");
  std::vector<float> a(100, 1.0f);
  const std::uint32_t numbers[] = {0, 7};
  const hipress_tensor tensor = {a.data(), 100, HIPRESS_FLOAT32, 0, nullptr};
  const hipress_tensor tensors[] = {tensor, tensor};
  hipress_work* works[2] = {};
  CHECK(hipress_submit_many(engine, 2, numbers, tensors, works) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("gradient 7"));
  CHECK(works[0] != nullptr);  // the gradient before the error was submitted
  CHECK(works[1] == nullptr);
  int done = 0;
  CHECK(hipress_wait_all(works, 2, -1, &done) == HIPRESS_INVALID);
  CHECK(hipress_wait_all(works, 2, 30, nullptr) == HIPRESS_INVALID);
  CHECK(hipress_wait_all(works, 2, 30, &done) == HIPRESS_OK);
  CHECK(done == 1);
  CHECK(hipress_submit_many(engine, 2, numbers, nullptr, works) == HIPRESS_INVALID);
  CHECK(last_error() == "tensors is null");
  const auto negative = static_cast<std::size_t>(-1);
  CHECK(hipress_submit_many(engine, negative, numbers, tensors, works) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("no list of works"));
  CHECK(hipress_wait_all(works, negative, 30, &done) == HIPRESS_INVALID);
  CHECK(hipress_discard(engine, numbers, negative) == HIPRESS_INVALID);
  for (const std::int64_t elements : {std::int64_t{-1}, std::int64_t{101}, INT64_MAX}) {
    hipress_work* work = nullptr;
    const hipress_tensor wrong = {a.data(), elements, HIPRESS_FLOAT32, 0, nullptr};
    CHECK(hipress_submit(engine, 0, &wrong, &work) == HIPRESS_INVALID);
    CHECK(work == nullptr);
  }
  hipress_close(engine);
}

TEST_CASE("C: a rank that ends the job is named by the others, with its reason") {
  std::string said;
  int culprit = -1;
  hipress_loss loss = HIPRESS_LEFT;
  const auto run = [&](int rank) {
    const hipress_options options = options_of(rank, 2, "local:test-c-abort");
    hipress_engine* engine = nullptr;
    hipress_status status = hipress_open(&options, kGradients, 2, &engine);
    if (rank == 1) {
      hipress_abort(engine, "it is interrupted");
      hipress_close(engine);
      return;
    }
    std::vector<float> a(100, 1.0f);
    const hipress_tensor tensor = {a.data(), 100, HIPRESS_FLOAT32, 0, nullptr};
    hipress_work* work = nullptr;
    // If the other rank is faster, hipress_open() already reports the loss here.
    if (status == HIPRESS_OK) status = hipress_submit(engine, 0, &tensor, &work);
    if (status == HIPRESS_OK) status = hipress_wait(work);
    if (status == HIPRESS_LOST) {
      said = last_error();
      culprit = hipress_culprit();
      loss = hipress_how_lost();
    }
    hipress_close(engine);
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  CHECK(culprit == 1);
  CHECK(loss == HIPRESS_FAULT);
  CHECK_THAT(said, Contains("rank 1") && Contains("it is interrupted"));
  hipress_abort(nullptr, "nothing");
}

TEST_CASE("C: a rank that closes its engine while another goes on is said to have left") {
  std::string said;
  hipress_status status = HIPRESS_OK;
  int culprit = -1;
  hipress_loss loss = HIPRESS_FAULT;
  const auto run = [&](int rank) {
    const hipress_options options = options_of(rank, 2, "local:test-c-leave");
    hipress_engine* engine = nullptr;
    hipress_status opened = hipress_open(&options, kGradients, 2, &engine);
    if (rank == 0 && opened == HIPRESS_OK) {
      std::vector<float> a(100, 1.0f);
      const hipress_tensor tensor = {a.data(), 100, HIPRESS_FLOAT32, 0, nullptr};
      hipress_work* work = nullptr;
      status = hipress_submit(engine, 0, &tensor, &work);
      if (status == HIPRESS_OK) status = hipress_wait(work);
      said = last_error();
      culprit = hipress_culprit();
      loss = hipress_how_lost();
    }
    hipress_close(engine);
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  CHECK(status == HIPRESS_LOST);
  CHECK(culprit == 1);
  CHECK(loss == HIPRESS_LEFT);
  CHECK_THAT(said, Contains("rank 1 left"));
}

TEST_CASE("C: a model file is read as every tool reads it") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("hipress_c_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "model.yaml";
  std::ofstream(path)
      << "name: x\ngradients:\n- {name: a, elements: 6, shape: [2, 3], ready: 5us, "
         "bucket: 0}\n- {name: b, elements: 4, ready: 7us, bucket: 0, dtype: float16}\n";
  hipress_model* model = nullptr;
  REQUIRE(hipress_read_model(path.c_str(), &model) == HIPRESS_OK);
  std::size_t count = 0;
  const hipress_gradient* const gradients = hipress_model_gradients(model, &count);
  REQUIRE(count == 2);
  CHECK_THAT(gradients[0].name, Equals("a"));
  CHECK(gradients[0].dimensions == 2);
  CHECK(gradients[0].shape[1] == 3);
  CHECK(gradients[0].ready_s == 7e-6);
  CHECK(gradients[1].type == HIPRESS_FLOAT16);
  hipress_free_model(model);
  std::ofstream(path) << "name: x\ngradients:\n- {name: a, elements: 0}\n";
  CHECK(hipress_read_model(path.c_str(), &model) == HIPRESS_INVALID);
  CHECK(model == nullptr);
  CHECK_THAT(last_error(), Contains("model.yaml:3"));
  CHECK(hipress_read_model(nullptr, &model) == HIPRESS_INVALID);
  CHECK(hipress_read_model(path.c_str(), nullptr) == HIPRESS_INVALID);
  CHECK(hipress_model_gradients(nullptr, &count) == nullptr);
  CHECK(count == 0);
  hipress_free_model(nullptr);
  std::filesystem::remove_all(folder);
}

TEST_CASE("C: names are text, and ranks are no more than can meet") {
  hipress_options options = options_of(0, 1, "");
  hipress_engine* engine = nullptr;
  const hipress_gradient odd = {"a\nb", 3, HIPRESS_FLOAT32, 0, nullptr, 0};
  CHECK(hipress_open(&options, &odd, 1, &engine) == HIPRESS_INVALID);
  CHECK(last_error() ==
        R"(gradient 0 is called 'a\x0ab': a name must not hold control character U+000A)");
  const hipress_gradient invisible = {"fc\u200bweight", 3, HIPRESS_FLOAT32, 0, nullptr, 0};
  CHECK(hipress_open(&options, &invisible, 1, &engine) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("must not hold invisible character U+200B"));
  const std::string name(2'000'000, 'x');
  const hipress_gradient endless = {name.c_str(), 3, HIPRESS_FLOAT32, 0, nullptr, 0};
  CHECK(hipress_open(&options, &endless, 1, &engine) == HIPRESS_INVALID);
  CHECK(last_error() == "gradient 0 is called '" + std::string(80, 'x') +
                            "…': a name must not hold more than 4096 bytes");
  options.ranks = 100000;
  CHECK(hipress_open(&options, kGradients, 2, &engine) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("100000 ranks") && Contains("at most 4096"));
}

TEST_CASE("C: whatever is called in whatever order ends with a status") {
  // Calls the functions of two engines of one rank at random, with null pointers, wrong numbers,
  // sizes and types, repeatedly, and with works of the other engine.
  std::mt19937 draws(7);
  const auto below = [&](unsigned bound) { return draws() % bound; };
  for (int round = 0; round < 40; ++round) {
    hipress_engine* engines[3] = {};  // the last one stays null
    for (int i = 0; i < 2; ++i) {
      const std::string meeting = fmt::format("local:test-c-misuse-{}-{}", round, i);
      hipress_options options = options_of(0, 1, meeting.c_str());
      options.plan = round % 2 == 0 ? "none" : "all";
      const hipress_status opened = hipress_open(&options, kGradients, 2, &engines[i]);
      CAPTURE(last_error());
      REQUIRE(opened == HIPRESS_OK);
    }
    // Each engine has tensors of its own, as it may write to them until they are waited for.
    std::vector<std::vector<float>> a(3, std::vector<float>(100, 1));
    std::vector<std::vector<std::uint16_t>> b(3, std::vector<std::uint16_t>(3, 0x3f80));
    std::vector<hipress_work*> works;
    const std::filesystem::path state =
        std::filesystem::temp_directory_path() / ("hipress_c_" + std::to_string(::getpid()));
    for (int step = 0; step < 60; ++step) {
      const unsigned which = below(8) == 0 ? 2 : below(2);
      hipress_engine* const engine = engines[which];
      switch (below(9)) {
        case 0:
        case 1:
        case 2: {
          const auto number = static_cast<std::uint32_t>(below(4) == 0 ? 2 + below(3) : below(2));
          hipress_tensor tensor =
              number == 0 ? hipress_tensor{a[which].data(), 100, HIPRESS_FLOAT32, 0, nullptr}
                          : hipress_tensor{b[which].data(), 3, HIPRESS_BFLOAT16, 0, nullptr};
          if (below(8) == 0) tensor.elements = below(5) - 1;
          if (below(8) == 0) tensor.data = nullptr;
          if (below(8) == 0) leave(static_cast<int>(below(9)), tensor.type);
          if (below(16) == 0) tensor.on_device = 1;
          hipress_work* work = nullptr;
          const hipress_status status = hipress_submit(
              engine, number, below(16) == 0 ? nullptr : &tensor, below(16) == 0 ? nullptr : &work);
          if (status == HIPRESS_OK && work != nullptr) works.push_back(work);
          break;
        }
        case 3:
          if (works.empty()) {
            CHECK(hipress_wait(nullptr) == HIPRESS_INVALID);
          } else {
            CHECK(hipress_wait(works.back()) <= HIPRESS_LOST);
            works.pop_back();
          }
          break;
        case 4:
          if (works.empty()) break;
          hipress_release(works.back());
          works.pop_back();
          break;
        case 5: {
          const std::uint32_t numbers[] = {static_cast<std::uint32_t>(below(3)), 9};
          CHECK(hipress_discard(engine, below(2) == 0 ? nullptr : numbers, below(3)) <=
                HIPRESS_LOST);
          break;
        }
        case 6: {
          int finite = 0;
          CHECK(hipress_all_finite(engine, below(4) == 0 ? nullptr : &finite) <= HIPRESS_LOST);
          CHECK(hipress_done(works.empty() ? nullptr : works.back()) >= 0);
          break;
        }
        case 7:
          if (!works.empty()) break;  // it would wait for gradients that are never submitted
          CHECK(hipress_save_state(engine, below(4) == 0 ? nullptr : state.c_str()) <=
                HIPRESS_LOST);
          CHECK(hipress_load_state(engine, below(4) == 0 ? "" : state.c_str()) <= HIPRESS_LOST);
          break;
        default: {
          int done = 0;
          CHECK(hipress_wait_all(nullptr, below(2), 0.01, &done) <= HIPRESS_LOST);
          CHECK(hipress_submit_many(engine, below(2), nullptr, nullptr, nullptr) <= HIPRESS_LOST);
          CHECK(hipress_notes(engine) != nullptr);
        }
      }
    }
    if (below(2) == 0) hipress_abort(engines[0], below(2) == 0 ? nullptr : "enough");
    for (hipress_work* const work : works) hipress_release(work);
    for (hipress_engine* const engine : engines) hipress_close(engine);
    std::filesystem::remove(state);
  }
}
