#include "sim/forecast.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "costs/cluster.hpp"
#include "plans/plan_file.hpp"

namespace hipress::sim {
namespace {

constexpr costs::Spread kSpread = {
    .host = 0.2, .links = 0.1, .compute = 0.05, .model = 0, .iterations = 0.05};
constexpr double kNormalP90 = 1.2815515655;  // in standard deviations

Scenario example(double backward_s, const std::string& plan) {
  models::Model model;
  model.name = "two gradients";
  model.forward_s = 0.01;
  for (const double share : {0.5, 1.0}) {
    models::Gradient gradient;
    gradient.name = share < 1 ? "late" : "early";
    gradient.elements = 1 << 20;
    gradient.ready_s = backward_s * share;
    model.gradients.push_back(gradient);
  }
  costs::Profile profile = costs::read_profile("v100-100g");
  costs::Cluster cluster = costs::cluster_from_profile(profile, 4);
  casync::Plan resolved =
      plans::resolve_plan(plan, {.model = model, .topology = "ring", .nodes = 4}).plan;
  return {std::move(model), std::move(resolved), std::move(profile), std::move(cluster)};
}

Response respond_to(const Scenario& scenario) {
  const casync::TaskGraph graph = expand(scenario);
  const Result result = simulate(scenario, graph);
  return respond(scenario, graph, casync::to_seconds(result.iteration),
                 casync::to_seconds(result.compute));
}

TEST_CASE("an interval is explained by the sources of its width") {
  const Response response = respond_to(example(0.01, "none"));
  const auto shares = [&](const costs::Spread& spread) {
    std::vector<double> found;
    for (const SpreadSource& source : explain_interval(response, spread)) {
      CHECK(source.alone.p10_s <= response.time_s * (1 + 1e-3));
      CHECK(source.alone.p90_s >= response.time_s * (1 - 1e-3));
      found.push_back(source.share);
    }
    return found;
  };
  const std::vector<double> all =
      shares({.host = 0.2, .links = 0.1, .compute = 0.05, .model = 0.1});
  REQUIRE(all.size() == 4);
  CHECK(all[0] + all[1] + all[2] + all[3] == Approx(1));
  CHECK(all[1] > all[0]);  // raw gradients take more time on links
  CHECK(shares({.links = 0.1}) == std::vector<double>{0, 1, 0, 0});
  CHECK(shares({}) == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("the parts of a response add up to the time") {
  for (const char* plan : {"none", "onebit", "fp16"}) {
    const Response response = respond_to(example(0.001, plan));
    CHECK(response.host_s + response.links_s + response.compute_s ==
          Approx(response.time_s).epsilon(1e-9));
    CHECK(response.host_s > 0);
    CHECK(response.links_s > 0);
    CHECK(response.floor_s == Approx(0.011));
  }
}

TEST_CASE("a response says what costs make of a time") {
  const Scenario scenario = example(0, "onebit");
  const Response response = respond_to(scenario);
  Scenario slower = scenario;
  slow_links(1.3, slower.profile, slower.cluster);
  const double slower_s = casync::to_seconds(iteration_time(slower, expand(slower)));
  CHECK(slower_s - response.time_s == Approx(0.3 * response.links_s).epsilon(0.02));
  slower = scenario;
  slow_host(1.3, slower.profile, slower.cluster);
  const double busier_s = casync::to_seconds(iteration_time(slower, expand(slower)));
  CHECK(busier_s - response.time_s == Approx(0.3 * response.host_s).epsilon(0.02));
}

TEST_CASE("what hides behind backward depends on computation alone") {
  Scenario scenario = example(10, "none");
  scenario.model.gradients.back().elements = 1;
  scenario.plan =
      plans::resolve_plan("none", {.model = scenario.model, .topology = "ring", .nodes = 4}).plan;
  const Response response = respond_to(scenario);
  CHECK(response.compute_s / response.time_s > 0.999);
  const Interval exposed = interval(without_compute(response, response.floor_s), kSpread);
  CHECK(exposed.p10_s >= 0);
  CHECK(exposed.p90_s < 0.002);
}

TEST_CASE("what is hidden gains nothing from faster links") {
  const costs::Spread links = {.links = 0.3};
  const Response response = {.time_s = 1, .links_s = 0.5, .compute_s = 0.5, .floor_s = 0.98};
  const Interval range = interval(response, links);
  CHECK(range.p10_s == 0.98);
  CHECK(range.p90_s > 1.1);
}

TEST_CASE("no draw is faster than the bytes over links whose rate is given") {
  Scenario scenario = example(0, "none");
  // In a ring of 4, every node sends 2·3/4 of 2 · 2^20 fp32 values.
  const double wire_s = 1.5 * 2 * 4 * (1 << 20) / scenario.cluster.link.bandwidth;
  const Response estimated = respond_to(scenario);
  CHECK(estimated.wire_s >= wire_s * (1 - 1e-6));
  CHECK(estimated.wire_s <= estimated.time_s);
  const costs::Spread wide = {.host = 1, .links = 1, .compute = 0.5, .model = 1, .iterations = 1};
  CHECK(interval(estimated, wide, 1).p10_s >= wire_s * (1 - 1e-6));
  // A measured link's rate is uncertain, so it sets no lower bound. A cluster link with another
  // rate counts as given, so it does.
  scenario.profile.source = "measured";
  CHECK(respond_to(scenario).wire_s == 0);
  scenario.cluster.link.set_bandwidth(scenario.cluster.link.bandwidth / 2);
  CHECK(respond_to(scenario).wire_s >= 2 * wire_s * (1 - 1e-6));
}

TEST_CASE("intervals of one factor are those of a lognormal") {
  const Interval host = interval({.time_s = 1, .host_s = 1}, kSpread);
  CHECK(host.p10_s == Approx(std::exp(-kNormalP90 * 0.2)).epsilon(0.01));
  CHECK(host.p90_s == Approx(std::exp(kNormalP90 * 0.2)).epsilon(0.01));
  const Interval compute = interval({.time_s = 2, .compute_s = 2}, kSpread);
  CHECK(compute.p90_s == Approx(2 * std::exp(kNormalP90 * 0.05)).epsilon(0.005));
}

TEST_CASE("the host's and the links' factors are independent, all kernels' the same") {
  // Small independent deviations of host and links add up as the root of the sum of their squares.
  const costs::Spread small = {.host = 0.02, .links = 0.01};
  const Interval both = interval({.time_s = 2, .host_s = 1, .links_s = 1}, small);
  CHECK(both.p90_s - 2 == Approx(kNormalP90 * std::hypot(0.02, 0.01)).epsilon(0.05));
}

TEST_CASE("few iterations widen an interval") {
  const Response response = {.time_s = 1, .compute_s = 1};
  const Interval many = interval(response, kSpread), few = interval(response, kSpread, 3);
  CHECK(few.p90_s > many.p90_s);
  CHECK(few.p10_s < many.p10_s);
}

TEST_CASE("the model's error, that of another plan and the median's are independent") {
  const costs::Spread spread = {.model = 0.01, .iterations = 0.01};
  const Response response = {.time_s = 1, .links_s = 1};
  const Interval one = interval(response, spread, 1);
  const double deviation = std::hypot(0.01, 0.01 * std::sqrt(std::acos(-1.0) / 2));
  CHECK(std::log(one.p90_s / one.p10_s) == Approx(2 * kNormalP90 * deviation).epsilon(0.05));
  const Saving both = saving({.time_s = 0.9, .links_s = 0.9}, response, spread);
  CHECK(std::log((1 - both.p10) / (1 - both.p90)) ==
        Approx(2 * kNormalP90 * std::sqrt(2.0) * 0.01).epsilon(0.05));
}

TEST_CASE("plans on one machine are compared under the same draws") {
  const costs::Spread spread = {.host = 0.3, .links = 0.3};
  const Response slow = {.time_s = 1.02, .links_s = 1.02}, fast = {.time_s = 1, .links_s = 1};
  CHECK(saving(fast, slow, spread).probability == 1);
  CHECK(saving(slow, fast, spread).probability == 0);
  CHECK(saving(fast, fast, spread).probability == 0.5);
  CHECK(saving(fast, slow, spread, 0.03).probability == 0);

  const Response kernels = {.time_s = 1, .host_s = 1};
  CHECK(saving(kernels, fast, spread).probability == Approx(0.5).margin(0.02));

  const Saving known = saving(fast, slow, spread);
  CHECK(known.p10 == Approx(1 - 1 / 1.02));
  CHECK(known.p90 == Approx(1 - 1 / 1.02));

  const costs::Spread off = {.model = 0.05};
  const double likely = saving(fast, slow, off).probability;
  CHECK(likely > 0.5);
  CHECK(likely < 0.9);
}

TEST_CASE("a time that cannot be told has no response") {
  const Scenario scenario = example(0.001, "none");
  const TimeOf none = [](const costs::Profile&, const costs::Cluster&) {
    return std::optional<double>();
  };
  CHECK_FALSE(sim::respond(1, 1, scenario.profile, scenario.cluster, none));
}

}  // namespace
}  // namespace hipress::sim
