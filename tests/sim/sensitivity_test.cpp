#include "sim/sensitivity.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "sim/forecast.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;

std::map<std::string, double> changes_us(const Scenario& scenario) {
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  const Result result = simulate(scenario, graph);
  std::map<std::string, double> changes;
  for (const Sensitivity& row : sensitivities(scenario, graph, result.iteration)) {
    CHECK(row.change == row.iteration - result.iteration);
    changes[std::string(row.name)] = casync::to_seconds(row.change) * 1e6;
  }
  return changes;
}

TEST_CASE("each improvement shortens its own terms of a chain") {
  // A compressed pair is one chain: F + E + (o + S/B + L) + A + E + (o + S/B + L) + D with F = 22,
  // S/B = 33 (33 kB), o = 5, L = 10, E = 3, A = 4, D = 2 us. With 10 % more speed a term x loses
  // x/11, with 10 % less cost x/10.
  models::Model model = test_model({32 * 1000 + 1000});
  model.forward_s = 22e-6;
  Scenario pair = test_scenario(model, "ps", 2, 0, 1);
  pair.cluster.link.latency_s = 10e-6;
  const auto change = changes_us(pair);
  CHECK(change.size() == improvements().size());
  CHECK(change.at("bandwidth") == Approx(-2 * 33.0 / 11).epsilon(1e-6));
  CHECK(change.at("latency") == Approx(-2 * 10.0 / 10).epsilon(1e-6));
  CHECK(change.at("overhead") == Approx(-2 * 5.0 / 10).epsilon(1e-6));
  CHECK(change.at("encode") == Approx(-2 * 3.0 / 11).epsilon(1e-6));
  CHECK(change.at("decode") == Approx(-(4 + 2) / 11.0).epsilon(1e-6));
  CHECK(change.at("compute") == Approx(-22.0 / 11).epsilon(1e-6));
  CHECK(change.at("merge") == 0);           // nothing is raw
  CHECK(change.at("transfer_cores") == 0);  // cores are not shared
}

TEST_CASE("what hides behind backward is not worth improving") {
  // Gradient 0 is ready at once, and synchronised long before gradient 1 is ready, at 1 ms. Only
  // the exchange of gradient 1 is exposed: 2·(5 + 0.128) us.
  models::Model model = test_model({3200, 32});
  model.gradients[1].ready_s = 1e-3;
  const auto change = changes_us(test_scenario(model, "ps", 2, kRaw, 1));
  CHECK(change.at("bandwidth") == Approx(-2 * 0.128 / 11).epsilon(1e-4));
  CHECK(change.at("compute") == Approx(-1000.0 / 11).epsilon(1e-6));
  CHECK(change.at("encode") == 0);
}

/// Share of the iteration that doubling the speed of a thing saves, by thing.
std::map<std::string, double> gains_of(const Scenario& scenario, std::string& bound) {
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  const std::vector<models::Gain> found =
      gains(scenario, graph, simulate(scenario, graph).iteration);
  bound = models::bound_by(found);
  std::map<std::string, double> shares;
  for (const models::Gain& gain : found) shares[std::string(gain.what)] = gain.share;
  return shares;
}

TEST_CASE("what bounds a job is what saves most if it is twice as fast") {
  // The first test's chain without latency: forward, 2·(5 + 33) = 76 us of network, and 3 + 4 + 3 +
  // 2 us of codecs.
  std::string bound;
  models::Model model = test_model({32 * 1000 + 1000});
  Scenario pair = test_scenario(model, "ps", 2, 0, 1);
  SECTION("the network") {
    pair.model.forward_s = 12e-6;  // 12 of 100 us
    const auto shares = gains_of(pair, bound);
    CHECK(shares.at("the network") == Approx(0.38).epsilon(1e-6));  // half of 76 of 100 us
    CHECK(shares.at("computation") == Approx(0.06).epsilon(1e-6));
    CHECK(shares.at("codecs and merges") == Approx(0.06).epsilon(1e-6));
    CHECK(shares.at("the CPU's part of transfers") == 0);  // cores are not shared
    CHECK(bound == "the network");
  }
  SECTION("computation") {
    pair.model.forward_s = 412e-6;  // T = 500 us
    CHECK(gains_of(pair, bound).at("computation") == Approx(0.412).epsilon(1e-6));
    CHECK(bound == "computation");
  }
  SECTION("both alike") {
    pair.model.forward_s = 75e-6;  // almost the network's 76 us
    gains_of(pair, bound);
    CHECK(bound == "computation and the network alike");
  }
  SECTION("codecs") {
    pair.profile.codecs["byte"] = {constant(300 * kUs), constant(200 * kUs), constant(400 * kUs)};
    // Codecs take 300 + 400 + 300 + 200 of 1276 us.
    CHECK(gains_of(pair, bound).at("codecs and merges") == Approx(600.0 / 1276).epsilon(1e-6));
    CHECK(bound == "codecs and merges");
  }
  SECTION("no one thing, where two hide each other") {
    // The first raw gradient takes as long on the network as the second in backward, so it gains
    // nothing to speed up only one of the two. The second's exchange then takes 2·(5 + 0.128) us.
    Scenario hidden = test_scenario(test_model({250'000, 32}), "ps", 2, kRaw, 1);
    hidden.model.gradients[1].ready_s = 2010e-6;  // 2·(5 + 1000) us
    const auto shares = gains_of(hidden, bound);
    for (const auto& [what, share] : shares) CHECK(share < 0.05);
    CHECK(bound == "no one thing");
  }
}

TEST_CASE("a slower network may cost much where a faster one brings nothing") {
  // 1000 us of communication hide behind 1100 us of backward; at half the speed, 900 us do not.
  Scenario hidden = test_scenario(test_model({123'750, 32}), "ps", 2, kRaw, 1);
  hidden.model.gradients[1].ready_s = 1100e-6;
  std::string bound;
  CHECK(gains_of(hidden, bound).at("the network") < 0.01);
  CHECK(bound == "computation");
  Scenario slower = hidden;
  slow_links(2, slower.profile, slower.cluster);
  const auto time = [](const Scenario& scenario) {
    return casync::to_seconds(
        simulate(scenario, casync::expand(scenario.model, scenario.plan)).iteration);
  };
  CHECK(time(slower) > 1.5 * time(hidden));
}

TEST_CASE("improvements leave the scenario as it was, for one node too") {
  const auto change = changes_us(test_scenario(test_model({32}), "ps", 1, kRaw, 1));
  for (const auto& [name, microseconds] : change) CHECK(microseconds == 0);
}

}  // namespace
}  // namespace hipress::sim
