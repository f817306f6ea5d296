// Tests of broadcasts: simulated times equal the formulas that docs/broadcast.md derives, and
// replays on real threads are verified.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "casync/folding.hpp"
#include "casync/topology.hpp"
#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "plans/lossless.hpp"
#include "replay/replay.hpp"
#include "sim/simulator.hpp"
#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using casync::TaskId;
using Catch::Contains;

namespace {

const std::vector<std::string> kTopologies = {"chain", "binomial", "scatter_allgather"};

/// Costs of a chunk. Its message takes 2 us + bytes / (1 GB/s), with half of the bytes if encoded.
/// The codec takes the given times.
struct Costs {
  std::int64_t encode_ps_per_element = 0, decode_ps_per_element = 0;

  costs::Profile profile() const {
    costs::Profile profile;
    profile.link = {.overhead_s = 2e-6, .bandwidth = 1e9, .bandwidth_both_ways = 1e9};
    const auto per_element = [](std::int64_t ps) {
      return costs::Curve{{{.b_s = static_cast<double>(ps) * 1e-12}}};
    };
    profile.codecs["half"] = {.encode = per_element(encode_ps_per_element),
                              .decode = per_element(decode_ps_per_element),
                              .decode_add = per_element(decode_ps_per_element)};
    return profile;
  }
};

casync::Plan plan_of(const std::string& topology, std::uint32_t nodes, std::int32_t chunks,
                     bool compressed, std::uint32_t root = 0) {
  casync::Plan plan;
  plan.topology = topology;
  plan.nodes = nodes;
  plan.root = root;
  plan.algorithms = {
      {.name = "half", .encoded_bytes = [](std::int64_t elements) { return 2 * elements; }}};
  plan.decisions = {{compressed ? std::int8_t{0} : casync::kRaw, chunks}};
  return plan;
}

std::int64_t simulated_ps(const casync::Plan& plan, std::int64_t elements, const Costs& costs,
                          sim::Network network = sim::Network::kPort) {
  const models::Model model = runtime::make_model({elements});
  const costs::Profile profile = costs.profile();
  return sim::simulate(casync::expand(model, plan), sim::TaskCosts(profile, plan.algorithms),
                       costs::cluster_from_profile(profile, plan.nodes), {.network = network})
      .iteration.count();
}

/// Time t_s in ps to send a raw chunk.
std::int64_t raw_ps(std::int64_t elements) { return 2'000'000 + 4 * elements * 1000; }

replay::ReplayResult run(const runtime::Case& made) {
  return replay::replay_threads("memory", made.model, made.plan, made.graph,
                                {.iterations = 2, .progress = {}});
}

}  // namespace

TEST_CASE("a raw chain of c chunks takes (N-2+c)(a + S/(cB))") {
  const auto network = GENERATE(sim::Network::kPort, sim::Network::kFair);
  for (const int nodes : {2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3, 7, 40}) {
      CAPTURE(nodes, chunks);
      const std::int64_t chunk = 640;
      const std::int64_t expected = (nodes - 2 + chunks) * raw_ps(chunk);
      CHECK(simulated_ps(plan_of("chain", nodes, chunks, false), chunks * chunk, {}, network) ==
            expected);
    }
  }
}

TEST_CASE("a compressed chain takes t_e + (N-1) t_s + t_d + (c-1) max(t_e, t_s, t_d)") {
  // A chunk has 1024 elements, or 2048 bytes encoded: t_s = 2 + 2.048 us.
  const std::int64_t chunk = 1024, t_s = 4'048'000;
  // Sending, encoding and decoding are the slowest stage in turn.
  const Costs costs = GENERATE(Costs{1000, 3000}, Costs{6000, 1000}, Costs{1000, 6000});
  const std::int64_t t_e = costs.encode_ps_per_element * chunk;
  const std::int64_t t_d = costs.decode_ps_per_element * chunk;
  for (const int nodes : {2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3, 7, 40}) {
      CAPTURE(nodes, chunks, t_e, t_d);
      const std::int64_t expected =
          t_e + (nodes - 1) * t_s + t_d + (chunks - 1) * std::max({t_e, t_s, t_d});
      CHECK(simulated_ps(plan_of("chain", nodes, chunks, true), chunks * chunk, costs) == expected);
    }
  }
}

TEST_CASE("a binomial tree takes ceil(log2 N) messages") {
  const std::int64_t elements = 6400;
  for (const auto& [nodes, rounds] :
       std::vector<std::pair<int, int>>{{1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {9, 4}}) {
    CAPTURE(nodes);
    CHECK(simulated_ps(plan_of("binomial", nodes, 1, false), elements, {}) ==
          rounds * raw_ps(elements));
    // Compression halves the bytes, and adds one encode and one decode.
    const std::int64_t t_s = 2'000'000 + 2 * elements * 1000;
    CHECK(simulated_ps(plan_of("binomial", nodes, 1, true), elements, {1000, 2000}) ==
          (nodes > 1 ? rounds * t_s + 3000 * elements : 0));
  }
}

TEST_CASE("scatter and all-gather take 2(N-1)(a + S/(NB))") {
  const std::int64_t piece = 640;
  for (const int nodes : {2, 3, 4, 5, 8, 16}) {
    CAPTURE(nodes);
    // With N = 2, the root sends the other node both pieces: two messages.
    CHECK(simulated_ps(plan_of("scatter_allgather", nodes, nodes, false), nodes * piece, {}) ==
          2 * (nodes - 1) * raw_ps(piece));
    // Codecs are faster than messages, so only the first encode and the last decode add time.
    const std::int64_t t_s = 2'000'000 + 2 * piece * 1000;
    CHECK(simulated_ps(plan_of("scatter_allgather", nodes, nodes, true), nodes * piece,
                       {1000, 2000}) == 2 * (nodes - 1) * t_s + 3000 * piece);
  }
}

TEST_CASE("the time of a broadcast does not depend on its root") {
  const bool compressed = GENERATE(false, true);
  for (const std::string& topology : kTopologies) {
    const Costs costs{900, 1100};
    const std::int64_t first = simulated_ps(plan_of(topology, 5, 7, compressed), 10000, costs);
    for (const std::uint32_t root : {1u, 4u}) {
      CAPTURE(topology, root);
      CHECK(simulated_ps(plan_of(topology, 5, 7, compressed, root), 10000, costs) == first);
    }
  }
}

TEST_CASE("no broadcast is faster than its row says it is at the least") {
  const Costs costs =
      GENERATE(Costs{300, 200}, Costs{6000, 1000}, Costs{1000, 6000}, Costs{3000, 3000});
  const auto network = GENERATE(sim::Network::kPort, sim::Network::kFair);
  for (const std::string& name : kTopologies) {
    const casync::Topology& topology = casync::find_topology(name);
    REQUIRE(topology.spread != nullptr);
    for (const std::uint32_t nodes : {2u, 3u, 4u, 7u}) {
      for (const int chunks : {1, 2, 5, 12}) {
        for (const bool compressed : {false, true}) {
          CAPTURE(name, nodes, chunks, compressed, costs.encode_ps_per_element);
          const std::int64_t elements = 5000;
          const auto costs_of = [&](std::int64_t k) {
            const auto x = static_cast<double>(casync::slice(elements, chunks, k).elements);
            const double message = 2e6 + (compressed ? 2 : 4) * x * 1000;
            return casync::SliceCosts{
                .encode = compressed ? x * static_cast<double>(costs.encode_ps_per_element) : 0,
                .decode = compressed ? x * static_cast<double>(costs.decode_ps_per_element) : 0,
                .message = message,
                .port = message};
          };
          casync::Slices slices;
          slices.first = costs_of(0);
          for (int k = 0; k < chunks && casync::slice(elements, chunks, k).elements > 0; ++k) {
            slices.last = costs_of(k);
            slices.count += 1;
            slices.total.encode += slices.last.encode;
            slices.total.decode += slices.last.decode;
            slices.total.message += slices.last.message;
            slices.total.port += slices.last.port;
          }
          slices.first_load = slices.first;
          slices.last_load = slices.last;
          const double least = topology.spread(slices, {.nodes = static_cast<double>(nodes)});
          const std::int64_t simulated =
              simulated_ps(plan_of(name, nodes, chunks, compressed), elements, costs, network);
          CHECK(least > 0);
          CHECK(least <= static_cast<double>(simulated) + 0.5);
          // The bound of a chain is exact, even with a shorter last chunk.
          if (name == "chain") CHECK(std::llround(least) == simulated);
        }
      }
    }
  }
}

TEST_CASE("with several GPUs per node the root scatters, and every node gathers") {
  // Scatter and gather of S = 25600 bytes over G = 4 GPUs take 3 us + 3/4 · S/(10 GB/s) each.
  const std::int64_t elements = 6400, local = 3'000'000 + 3 * 25600 * 100 / 4;
  casync::Plan plan = plan_of("chain", 3, 4, false, 1);
  plan.gpus_per_node = 4;
  const models::Model model = runtime::make_model({elements});
  const costs::Profile profile = Costs{}.profile();
  costs::Cluster cluster = costs::cluster_from_profile(profile, 3);
  cluster.gpus_per_node = 4;
  cluster.gpu_link = {.overhead_s = 1e-6, .bandwidth = 10e9};
  const casync::TaskGraph graph = casync::expand(model, plan);
  CHECK(sim::simulate(graph, sim::TaskCosts(profile, plan.algorithms), cluster,
                      {.network = sim::Network::kPort})
            .iteration.count() == 2 * local + (3 - 2 + 4) * raw_ps(elements / 4));
  CHECK(casync::whole_tasks(model, plan) == graph.tasks());
}

TEST_CASE("broadcasts are run and verified, and have as many tasks as they say", "[slow]") {
  const std::string topology = GENERATE_COPY(from_range(kTopologies));
  const std::uint32_t nodes = GENERATE(1u, 2u, 3u, 5u, 8u);
  const std::int32_t chunks = GENERATE(1, 3, 8);
  const std::string algorithm = GENERATE("raw", "fp16", "onebit", "terngrad");
  CAPTURE(topology, nodes, chunks, algorithm);
  runtime::Case made = runtime::make_case(topology, nodes, chunks, algorithm, {600, 7});
  made.plan.plan.root = nodes / 2;
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  casync::check(made.graph);
  CHECK(run(made).verified);
  CHECK(casync::whole_tasks(made.model, made.plan.plan) == made.graph.tasks());
}

TEST_CASE("what a codec spoils on the way does not pass for a broadcast") {
  runtime::Case made{.model = runtime::make_model({100}), .plan = {}, .graph = {}};
  made.plan =
      runtime::make_plan(made.model, "chain", 3, 1, std::make_shared<runtime::WrongCodec>(17));
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  // All receivers get the same bits, but with larger errors than those of a cast to fp16.
  CHECK_THROWS_WITH(run(made),
                    Contains("gradient 'g0', element 17") && Contains("node 0 broadcasts"));
}

TEST_CASE("which codecs keep every bit of which tensors is found out") {
  using models::Dtype;
  const auto kept = [](const char* name) { return plans::kept_dtype(*kernels::make_codec(name)); };
  CHECK(kept("fp16") == Dtype::kFloat16);
  CHECK(kept("bf16") == Dtype::kBfloat16);
  CHECK(kept("onebit") == std::nullopt);
  CHECK(kept("terngrad") == std::nullopt);
  CHECK(kept("dgc") == std::nullopt);
  CHECK(kept("powersgd") == std::nullopt);
  CHECK_FALSE(plans::keeps_every_bit(*kernels::make_codec("fp16"), Dtype::kBfloat16));
}
