#include <catch2/catch.hpp>
#include <map>

#include "sim/sensitivity.hpp"
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
  // S/B = 33 (33 kB), o = 5, L = 10, E = 3, A = 4, D = 2 us. At 10 % more speed a term x loses
  // x/11, at 10 % less cost x/10.
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
  // Gradient 0 is ready at once and synchronised long before gradient 1, of 1 ms, is computed; that
  // one's exchange, 2·(5 + 0.128) us, is all that shows.
  models::Model model = test_model({3200, 32});
  model.gradients[1].ready_s = 1e-3;
  const auto change = changes_us(test_scenario(model, "ps", 2, kRaw, 1));
  CHECK(change.at("bandwidth") == Approx(-2 * 0.128 / 11).epsilon(1e-4));
  CHECK(change.at("compute") == Approx(-1000.0 / 11).epsilon(1e-6));
  CHECK(change.at("encode") == 0);
}

TEST_CASE("improvements leave the scenario as it was, for one node too") {
  const auto change = changes_us(test_scenario(test_model({32}), "ps", 1, kRaw, 1));
  for (const auto& [name, microseconds] : change) CHECK(microseconds == 0);
}

}  // namespace
}  // namespace hipress::sim
