#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "planner/schedules/required_bandwidth.hpp"
#include "planner/schedules/scheduled.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {
namespace {

constexpr double kGigabit = 1e9 / 8;  // in bytes per second

/// Model of equal layers, each with `elements` raw fp32 values. Forward takes a third of the step.
models::Model alike(int layers, std::int64_t elements, double step_s) {
  models::Model model;
  model.forward_s = step_s / 3;
  for (int layer = layers; layer-- > 0;) {
    model.gradients.push_back({.name = fmt::format("blocks.{}.weight", layer),
                               .elements = elements,
                               .ready_s = 2 * step_s / 3 * (layers - layer) / layers});
  }
  return model;
}

/// Two nodes that send raw values by a ring, without latency and overheads.
sim::Scenario two_ends(models::Model model, const std::string& schedule,
                       double bandwidth = kGigabit) {
  sim::Scenario scenario;
  scenario.model = std::move(model);
  scenario.plan = {.topology = "ring",
                   .nodes = 2,
                   .algorithms = {},
                   .decisions = std::vector<casync::Decision>(scenario.model.gradients.size(),
                                                              {casync::kRaw, 2})};
  scenario.plan.schedule = casync::Schedule::parse(schedule);
  scenario.profile.link.bandwidth = scenario.profile.link.bandwidth_both_ways = bandwidth;
  scenario.cluster.nodes = 2;
  scenario.cluster.link = scenario.profile.link;
  scenario.cluster.host = {0, 1};
  scenario.cluster.compute_speed = {1, 1};
  scenario.network = sim::Network::kPort;
  scenario.iterations = 4;
  return scenario;
}

double period_s(const sim::Scenario& scenario) {
  const casync::TaskGraph graph = sim::expand(scenario, sim::Fold::kExactly).graph;
  const sim::Result result = sim::simulate(scenario, graph, sim::Timelines::kRecorded);
  return casync::to_seconds(sim::steady_state(graph, result.timeline, scenario.iterations).period);
}

double utilization(const sim::Scenario& scenario) {
  const double step_s =
      casync::to_seconds(casync::from_seconds(models::before_backward_s(scenario.model)) +
                         casync::from_seconds(models::backward_s(scenario.model)));
  return sim::steps_per_period(scenario) * step_s / period_s(scenario);
}

TEST_CASE("local updates of one fragment take the time of the closed form") {
  std::mt19937 draws(53);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(draws);
  };
  for (int point = 0; point < 20; ++point) {
    const int layers = 2 + static_cast<int>(draws() % 40);
    const int steps = point % 4 == 0 ? 1 : 1 + static_cast<int>(draws() % 200);
    const std::int64_t elements = 64 * (1 + static_cast<std::int64_t>(draws() % 1'000'000));
    const double step_s = 3e-6 * std::round(between(1e3, 1e6)) * layers;
    const double bandwidth = kGigabit * between(0.1, 50);
    CAPTURE(point, layers, steps, elements, step_s, bandwidth);
    const std::string schedule = steps == 1 ? "ddp" : fmt::format("local(steps={})", steps);
    const double found = period_s(two_ends(alike(layers, elements, step_s), schedule, bandwidth));
    const double layer_s = 4.0 * static_cast<double>(elements) / bandwidth;
    const double waits = step_s / 3 + 2 * step_s / (3 * layers) + layers * layer_s;
    const double expected = (steps - 1) * step_s + std::max(waits, step_s + layer_s);
    // The times of each layer are rounded to picoseconds.
    CHECK(std::abs(found - expected) <= 4e-12 * layers);
  }
}

/// A job and its required bandwidth: a row of the published table.
struct Cell {
  int layers = 0, local_steps = 0, fragments = 0, every = 0, overlap = 0, bits = 0;
  double parameters = 0, step_s = 0, utilization = 0, gbit_s = 0;
  std::string method;

  std::string schedule() const {
    if (method == "ddp") return "ddp";
    return "local(steps=" + std::to_string(local_steps) +
           ", fragments=" + std::to_string(fragments) + ", every=" + std::to_string(every) +
           ", overlap=" + std::to_string(overlap) + ")";
  }
};

std::vector<Cell> published() {
  std::ifstream file(HIPRESS_SOURCE_DIR "/tests/data/streaming_diloco_table4.csv");
  REQUIRE(file);
  std::string line;
  std::getline(file, line);
  std::vector<Cell> cells;
  while (std::getline(file, line)) {
    for (char& c : line) c = c == ',' ? ' ' : c;
    std::istringstream in(line);
    Cell cell;
    std::string model;
    in >> model >> cell.parameters >> cell.layers >> cell.step_s >> cell.method >>
        cell.local_steps >> cell.fragments >> cell.every >> cell.overlap >> cell.bits >>
        cell.utilization >> cell.gbit_s;
    REQUIRE(in);
    cells.push_back(cell);
  }
  return cells;
}

// Table 4 of Douillard et al., "Streaming DiLoCo with overlapping communication", arXiv 2501.18512,
// gives the largest bandwidth of a grid that does not reach the utilisation. The grid has 50 points
// from 0.1 to 1000 Gbit/s.
TEST_CASE("published required bandwidths are found within a step of their grid") {
  const double grid_step = std::pow(10.0, 4.0 / 49);
  const std::vector<Cell> cells = published();
  REQUIRE(cells.size() == 75);
  int equal = 0;
  for (const Cell& cell : cells) {
    const auto elements = static_cast<std::int64_t>(cell.parameters / cell.layers * cell.bits / 32);
    const sim::Scenario scenario =
        two_ends(alike(cell.layers, elements, cell.step_s), cell.schedule());
    const std::vector<RequiredBandwidth> found =
        required_bandwidths(scenario, std::vector{cell.utilization});
    CAPTURE(cell.schedule(), cell.parameters, cell.bits, cell.utilization, cell.gbit_s);
    REQUIRE(found.front().bits_per_s);
    const double steps_up =
        std::log(*found.front().bits_per_s / 1e9 / cell.gbit_s) / std::log(grid_step);
    // The table rounds to one decimal.
    const double rounding = std::log(1 + 0.05 / cell.gbit_s) / std::log(grid_step);
    CHECK(steps_up > -1 - rounding);
    CHECK(steps_up <= 1 + rounding);
    equal += steps_up > -rounding ? 1 : 0;
  }
  CHECK(equal >= 60);
  WARN(equal << " of 75 cells are the published point of the grid");
}

TEST_CASE("links of the required bandwidth give the utilisation that was asked for") {
  const models::Model model = alike(12, 1'000'000, 0.1);
  const std::vector wanted = {0.5, 0.8, 0.95, 0.99};
  for (const char* schedule : {"ddp", "local(steps=20)", "local(steps=20, fragments=4, overlap=1)",
                               "local(steps=20, fragments=6, pattern=sequential, overlap=3)"}) {
    const std::vector<RequiredBandwidth> found =
        required_bandwidths(two_ends(model, schedule), wanted);
    REQUIRE(found.size() == wanted.size());
    for (const RequiredBandwidth& row : found) {
      CAPTURE(schedule, row.utilization, row.reason);
      REQUIRE(row.bits_per_s);
      CHECK(utilization(two_ends(model, schedule, *row.bits_per_s / 8)) ==
            Approx(row.utilization).margin(0.005));
      CHECK(*row.bits_per_s_p10 <= *row.bits_per_s);
      CHECK(*row.bits_per_s_p90 >= *row.bits_per_s);
    }
  }
}

TEST_CASE("a utilisation that no bandwidth reaches has a reason instead") {
  sim::Scenario scenario = two_ends(alike(4, 1'000'000, 0.1), "ddp");
  scenario.cluster.link.latency_s = 0.05;
  const std::vector<RequiredBandwidth> found =
      required_bandwidths(scenario, std::vector{0.3, 0.99});
  CHECK(found[0].bits_per_s);
  CHECK_FALSE(found[1].bits_per_s);
  CHECK_FALSE(found[1].bits_per_s_p90);
  CHECK_THAT(found[1].reason, Catch::Contains("% at any bandwidth"));
}

// INTELLECT-1 (arXiv 2412.01152) has 10 B parameters, and 38 minutes of computation between
// synchronisations. Three of its synchronisations took 103, 382 and 469 s.
TEST_CASE("INTELLECT-1's utilisations are those published") {
  const std::pair<double, double> measured[] = {{103, 0.957}, {382, 0.856}, {469, 0.830}};
  for (const auto& [synchronisation_s, published] : measured) {
    constexpr std::int64_t kLayers = 32;
    constexpr std::int64_t kElements = 10'000'000'000 / kLayers / 4;  // one byte per parameter
    const double bandwidth = 1e10 / synchronisation_s;
    // 100 steps of 22.8 s take 38 minutes.
    const sim::Scenario scenario =
        two_ends(alike(kLayers, kElements, 22.8), "local(steps=100)", bandwidth);
    CHECK(utilization(scenario) == Approx(published).margin(0.01));
  }
}

TEST_CASE("a period that is folded takes as long as that of all nodes") {
  for (const char* schedule : {"local(steps=8, fragments=4, overlap=1)", "local(steps=5)"}) {
    sim::Scenario scenario = two_ends(alike(8, 32 * 1024, 0.001), schedule);
    scenario.plan.nodes = scenario.cluster.nodes = 8;
    scenario.plan.decisions.assign(8, {casync::kRaw, 8});
    scenario.cluster.host = {0, 1, 2, 3, 4, 5, 6, 7};
    scenario.cluster.compute_speed.assign(8, 1);
    for (const char* topology : {"ps", "ring"}) {
      scenario.plan.topology = topology;
      const auto whole = sim::expand(scenario, casync::Folding::kNone);
      const auto folded = sim::expand(scenario, casync::Folding::kFolded);
      CHECK(folded.tasks() * 8 == whole.tasks());
      CHECK(sim::iteration_time(scenario, folded) == sim::iteration_time(scenario, whole));
    }
  }
}

TEST_CASE("the schedule that is chosen has the shortest period of those that are fastest") {
  const auto plan = [](std::uint32_t steps, double iteration_s) {
    ScheduledPlan made;
    made.steps = steps;
    made.iteration_s = iteration_s;
    return made;
  };
  CHECK(choose_schedule(std::vector{plan(1, 2), plan(100, 1), plan(50, 1.004)}, 0.005) == 2);
  CHECK(choose_schedule(std::vector{plan(1, 2), plan(100, 1), plan(50, 1.006)}, 0.005) == 1);
  CHECK(choose_schedule(std::vector{plan(100, 1), plan(1, 1)}, 0.005) == 1);
  // Among plans of one period, the lowest `late` is chosen, then the lowest loss.
  std::vector<ScheduledPlan> plans(3, plan(100, 1));
  plans[0].late = 2;
  plans[1].late = plans[2].late = 1;
  plans[1].given_up = {.place = 3};
  CHECK(choose_schedule(plans, 0.005) == 2);
}

}  // namespace
}  // namespace hipress::planner
