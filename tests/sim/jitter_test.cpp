#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "io/error.hpp"
#include "io/file.hpp"
#include "sim/replicas.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kWork = 1'000'000'000;
constexpr std::uint32_t kTasks = 100'000;

struct Moments {
  double mean = 0, variance = 0;
};

/// Moments of the factors that many tasks draw.
Moments moments_of(const Jitter& jitter, Jitter::Draws draws = {}) {
  double sum = 0, squares = 0;
  for (std::uint32_t task = 0; task < kTasks; ++task) {
    const double factor = static_cast<double>(jitter.apply(kWork, draws, task)) / kWork;
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / kTasks;
  return {mean, squares / kTasks - mean * mean};
}

TEST_CASE("jitter has the mean and the spread that it is asked for") {
  // A uniform factor in 1 ± w has variance w²/3, a lognormal one of mean 1 has e^(s²) − 1. The mean
  // of 100 000 draws has a standard deviation of σ/√100000; 4 of these are allowed.
  const Moments uniform = moments_of(Jitter::parse("uniform:0.3"));
  CHECK(uniform.mean == Approx(1).margin(4 * 0.173 / 316));
  CHECK(uniform.variance == Approx(0.09 / 3).epsilon(0.02));
  const Moments lognormal = moments_of(Jitter::parse("lognormal:0.25"));
  CHECK(lognormal.mean == Approx(1).margin(4 * 0.254 / 316));
  CHECK(lognormal.variance == Approx(0.064494).epsilon(0.03));
}

TEST_CASE("jitter draws by seed, replica and task, the same on every compiler") {
  const Jitter jitter = Jitter::parse("lognormal:0.1");
  std::string drawn;
  for (std::uint32_t task = 0; task < 1000; ++task) {
    drawn += std::to_string(jitter.apply(kWork, {7, 3}, task)) + " ";
  }
  CHECK(io::fingerprint(drawn) == "6ebf067e22fa0207");
  CHECK(jitter.apply(kWork, {7, 3}, 5) != jitter.apply(kWork, {7, 4}, 5));
  CHECK(jitter.apply(kWork, {7, 3}, 5) != jitter.apply(kWork, {8, 3}, 5));
  CHECK(jitter.apply(kWork, {7, 3}, 5) != jitter.apply(kWork, {7, 3}, 6));
}

TEST_CASE("samples are drawn equally often, as they are") {
  const std::string path = "test_jitter_samples.txt";
  std::ofstream(path) << "# measured\n0.5\n\n2\n";
  const Jitter jitter = Jitter::parse("samples:" + path);
  std::uint32_t low = 0;
  for (std::uint32_t task = 0; task < kTasks; ++task) {
    const std::int64_t work = jitter.apply(100, {}, task);
    REQUIRE((work == 50 || work == 200));
    low += work == 50;
  }
  CHECK(low == Approx(kTasks / 2).margin(4 * 158));  // within four standard deviations of a fair
                                                     // coin
  std::ofstream(path) << "1.0\nfast\n";
  CHECK_THROWS_WITH(Jitter::parse("samples:" + path), Contains(path + ":2") && Contains("'fast'"));
  std::ofstream(path) << "# nothing\n";
  CHECK_THROWS_WITH(Jitter::parse("samples:" + path), Contains("has no factors"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(Jitter::parse("samples:" + path), Contains("cannot be read"));
  CHECK_THROWS_WITH(Jitter::parse("samples:."), Contains(".: is a folder"));
}

TEST_CASE("samples are decimal numbers with or without blanks around them") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("factors.txt", "\t0.25 \r\n  # comment\n");
  CHECK(Jitter::parse("samples:" + path).constant() == 0.25);
  for (const char* text : {"0x1p-2", "inf", "1,5", "-1", "1 2", "1001"}) {
    CAPTURE(text);
    folder.file("factors.txt", text);
    CHECK_THROWS_WITH(Jitter::parse("samples:" + path),
                      Contains(path + ":1: a factor must be a number from 0 to 1000"));
  }
}

TEST_CASE("jitter knows whether all factors are one") {
  CHECK(Jitter::parse("uniform:0").constant() == 1.0);
  CHECK(Jitter::parse("lognormal:0").constant() == 1.0);
  CHECK(Jitter({2, 2}).constant() == 2.0);
  CHECK(!Jitter::parse("uniform:0.1").constant());
}

TEST_CASE("a factor never makes more than 64 bits hold") {
  CHECK(Jitter({1000.0}).apply(INT64_MAX / 2, {}, 0) == INT64_MAX);
}

TEST_CASE("jitter that cannot be is refused with what is known") {
  CHECK_THROWS_WITH(Jitter::parse("normal:1"), Contains("lognormal:S, uniform:W, samples:FILE"));
  CHECK_THROWS_WITH(Jitter::parse("lognormal"), Contains("a number from 0 to 2"));
  CHECK_THROWS_WITH(Jitter::parse("lognormal:nan"), Contains("a number from 0 to 2"));
  CHECK_THROWS_WITH(Jitter::parse("uniform:1.5"), Contains("a number from 0 to 1"));
  CHECK_THROWS_WITH(Jitter::parse("uniform:0.1x"), Contains("a number from 0 to 1"));
  CHECK_THROWS_WITH(Jitter::parse("uniform:0x1"), Contains("a number from 0 to 1"));
  CHECK_THROWS_AS(Jitter({-1.0}), io::InputError);
}

TEST_CASE("replicas: percentiles are those of the single simulations, for any number of jobs") {
  Scenario scenario = test_scenario(test_model({64, 4096}), "ring", 4, 0, 4);
  scenario.jitter = std::make_shared<const Jitter>(Jitter::parse("uniform:0.5"));
  scenario.draws.seed = 11;
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  constexpr std::uint32_t kCount = 20;
  std::vector<Picoseconds> times;
  for (scenario.draws.replica = 0; scenario.draws.replica < kCount; ++scenario.draws.replica) {
    times.push_back(simulate(scenario, graph).iteration);
  }
  std::sort(times.begin(), times.end());
  for (const unsigned jobs : {1u, 2u, 5u, 64u}) {
    const Replicas replicas = run_replicas(scenario, graph, kCount, jobs);
    CHECK(replicas.p10 == times[1]);  // nearest rank: 2 of 20 are at most that
    CHECK(replicas.p50 == times[9]);
    CHECK(replicas.p90 == times[17]);
    CHECK(replicas.p99 == times[19]);
    CHECK(replicas.mean.count() ==
          std::accumulate(times.begin(), times.end(), Picoseconds{}).count() / kCount);
  }
  CHECK(times.front() < times.back());
}

}  // namespace
}  // namespace hipress::sim
