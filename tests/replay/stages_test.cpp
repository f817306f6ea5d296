#include <catch2/catch.hpp>
#include <cmath>

#include "replay/reference.hpp"
#include "replay/replay.hpp"
#include "replay/room.hpp"
#include "replay/verify.hpp"
#include "runtime/runtime.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;

namespace {

std::vector<std::string> staged_algorithms() {
  std::vector<std::string> names;
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (row.additive) names.emplace_back(row.name);
  }
  return names;
}

/// Model with matrices, a convolution, and gradients that staged codecs leave raw.
models::Model shaped_model() {
  const std::vector<std::vector<std::int64_t>> shapes{{64, 48},      {100},  {33, 70},
                                                      {40, 4, 3, 3}, {3, 5}, {64, 48}};
  models::Model model{.name = "shaped", .source = {}, .unit = {}, .gradients = {}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    const std::size_t number = model.gradients.size();
    model.gradients.push_back({.name = "g" + std::to_string(number),
                               .elements = kernels::elements_of(shape),
                               .ready_s = 1e-5 * static_cast<double>(number),
                               .shape = shape});
  }
  return model;
}

Case staged_case(const std::string& topology, std::uint32_t nodes, std::int32_t partitions,
                 const std::string& algorithm,
                 const std::function<void(casync::Plan&)>& change = {}) {
  Case made;
  made.model = shaped_model();
  made.plan = make_plan(made.model, topology, nodes, partitions, codec_or_raw(algorithm));
  if (change) change(made.plan.plan);
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  return made;
}

ReplayOptions iterations(int count) { return {.warmup = 1, .iterations = count, .progress = {}}; }

bool verifies(const std::string& transport, const Case& made) {
  return replay_threads(transport, made.model, made.plan, made.graph, iterations(3)).verified;
}

}  // namespace

TEST_CASE("gradients compressed in stages verify over every topology, by their own and in groups",
          "[slow]") {
  const std::string algorithm = GENERATE(from_range(staged_algorithms()));
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  CAPTURE(algorithm, topology);
  for (std::uint32_t nodes = 1; nodes <= 4; ++nodes) {
    for (const std::int32_t partitions : {1, 3, 4}) {
      CHECK(verifies("memory", staged_case(topology, nodes, partitions, algorithm)));
    }
    CHECK(verifies("memory", staged_case(topology, nodes, 1, algorithm, [](casync::Plan& plan) {
                     plan.bulk_groups = {{0, 2, 5}};
                   })));
  }
  CHECK(verifies("tcp", staged_case(topology, 3, 2, algorithm)));
}

TEST_CASE("stages verify without pipelining, with batches, and beside a topology for raw ones") {
  const std::string algorithm = GENERATE(from_range(staged_algorithms()));
  CAPTURE(algorithm);
  const auto with = [&](const std::function<void(casync::Plan&)>& change) {
    return verifies("memory", staged_case("ring", 3, 3, algorithm, change));
  };
  CHECK(with([](casync::Plan& plan) { plan.pipelining = false; }));
  CHECK(with([](casync::Plan& plan) { plan.batch.threshold_bytes = 1 << 20; }));
  CHECK(with([](casync::Plan& plan) { plan.raw_topology = "allreduce"; }));
  CHECK(with([](casync::Plan& plan) { plan.raw_topology = "ps"; }));
}

TEST_CASE("with error feedback, the sum of what low rank sends comes close to the sum of means") {
  // Only the residual is missing. The sum of means grows faster than it, so its share shrinks.
  const std::string algorithm = GENERATE(from_range(staged_algorithms()));
  CAPTURE(algorithm);
  const Case made = staged_case("ring", 2, 2, algorithm);
  const Inputs inputs{.seed = 3};
  Reference reference(made.graph, made.model, made.plan, inputs);
  std::size_t first = 0;
  while (reference.partitions()[first].gradient != 0) ++first;
  const auto elements = static_cast<std::size_t>(made.model.gradients[0].elements);
  std::vector<double> sent(elements), exact(elements);
  const auto error = [&] {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      difference += (sent[i] - exact[i]) * (sent[i] - exact[i]);
      norm += exact[i] * exact[i];
    }
    return std::sqrt(difference / norm);
  };
  double early = 0;
  constexpr std::uint64_t kSteps = 60;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    // Adds the mean that an exact exchange would give in this step. What a codec leaves out of it
    // is sent in later steps.
    std::vector<float> values(elements);
    for (std::uint32_t node = 0; node < 2; ++node) {
      fill_unit(inputs, step, node, reference.layout().units[0], made.model, 0, values);
      for (std::size_t i = 0; i < elements; ++i) exact[i] += values[i] / 2.0;
    }
    reference.run(first, step, [&](const Reference::Block& block) {
      REQUIRE(block.values[0].size() == elements);
      for (std::size_t i = 0; i < elements; ++i) {
        sent[i] += block.values[0][i];
        REQUIRE(block.values[0][i] == block.values[1][i]);
      }
    });
    if (step == 0) early = error();
  }
  CHECK(early > 0.3);  // low rank approximates full-rank noise badly
  CHECK(error() < early);
}

TEST_CASE("acpsgd sends one factor a step, and of powersgd's bytes half in the mean", "[slow]") {
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  const auto nodes = GENERATE(2u, 4u);
  CAPTURE(topology, nodes);
  const auto sent = [&](const std::string& algorithm, int count) {
    Case made;
    made.model = models::Model{.name = "one", .source = {}, .unit = {}, .gradients = {}};
    made.model.gradients.push_back({.name = "g", .elements = 4096 * 512, .shape = {4096, 512}});
    made.plan = make_plan(made.model, topology, nodes, static_cast<std::int32_t>(nodes),
                          codec_or_raw(algorithm));
    made.graph = casync::expand_to_run(made.model, made.plan.plan);
    const ReplayResult result = replay_threads("memory", made.model, made.plan, made.graph,
                                               {.warmup = count, .iterations = 1, .progress = {}});
    CHECK(result.verified);
    return result.bytes_sent.at(0);  // of the last iteration
  };
  const std::int64_t both = sent("powersgd(rank=4)", 0);
  CHECK(both == 2 * (nodes - 1) * (4096 + 512) * 4 * 4 / nodes);
  const std::int64_t even = sent("acpsgd(rank=4)", 0), odd = sent("acpsgd(rank=4)", 1);
  CHECK(even + odd == both);
  CHECK(std::max(even, odd) == 8 * std::min(even, odd));
}

TEST_CASE("the memory of stages is counted") {
  const Case raw = staged_case("ring", 2, 2, "raw");
  const std::vector<std::uint32_t> nodes{0};
  const Room least = room_of(raw.graph, raw.model, raw.plan, nodes, false);
  for (const std::string& algorithm : staged_algorithms()) {
    const Case made = staged_case("ring", 2, 2, algorithm);
    const Room room = room_of(made.graph, made.model, made.plan, nodes, false);
    CHECK(room.gradients == least.gradients);
    CHECK(room.states >= 4 * 64 * 48);  // the fp32 residual of a matrix
    CHECK(room.messages > 0);
  }
}

TEST_CASE("every rank's factors are compared with node 0's, and a differing bit is named") {
  const Case made = staged_case("ring", 3, 1, "powersgd(rank=2)");
  const auto errors = run_ranks(3, [&](transport::Endpoint& endpoint) {
    Verifier verifier(endpoint, made.graph, made.model, made.plan, {.seed = 1});
    std::vector<float> values(64, 1.5f);
    const std::vector<Factor> factors{{0, 0, values}, {0, 1, values}, {2, 0, values}};
    verifier.verify_factors(6, factors);
    if (endpoint.rank() == 1) values[40] = std::nextafter(values[40], 2.0f);
    verifier.verify_factors(7, std::span(factors).first(0));
    verifier.verify_factors(8, factors);
  });
  for (const auto& error : errors) {
    CHECK_THAT(
        message_of(error),
        Catch::Contains("after iteration 8: gradient 'g0': node 1 has another factor of stage 0"));
  }
}

TEST_CASE("a runtime shows the factors of an iteration, the same on all ranks") {
  const std::string algorithm = GENERATE(from_range(staged_algorithms()));
  CAPTURE(algorithm);
  const Case made = staged_case("ring", 2, 1, algorithm);
  std::vector<std::vector<std::vector<float>>> seen(made.graph.nodes);
  const auto errors = run_ranks(2, [&](transport::Endpoint& endpoint) {
    const auto node = static_cast<std::uint32_t>(endpoint.rank());
    const Program program(made.graph, made.model, made.plan, node);
    std::vector<std::vector<float>> values;
    for (std::uint32_t unit = 0; unit < program.layout().first_factor; ++unit) {
      const casync::Unit& what = program.layout().units[unit];
      values.emplace_back(static_cast<std::size_t>(what.elements));
      fill_unit({.seed = 1}, 0, node, what, made.model, 0, values.back());
    }
    const std::vector<std::span<float>> units(values.begin(), values.end());
    kernels::StateStore states;
    Runtime runtime(endpoint, program, units, states, {.seed = 1, .timeout_s = 30});
    runtime.begin(0);
    endpoint.all_gather("");
    runtime.start(transport::Clock::now());
    for (std::uint32_t g = 0; g < made.model.gradients.size(); ++g) {
      runtime.gradient_ready(g, transport::Clock::now());
    }
    runtime.wait();
    for (const Factor& factor : runtime.factors()) {
      seen[node].emplace_back(factor.values.begin(), factor.values.end());
    }
  });
  for (const auto& error : errors) REQUIRE(message_of(error) == "no error");
  REQUIRE(!seen[0].empty());
  CHECK(seen[0] == seen[1]);
  double sum = 0;
  for (const std::vector<float>& factor : seen[0]) {
    for (const float value : factor) sum += std::fabs(value);
  }
  CHECK(sum > 0);
}
