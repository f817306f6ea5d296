#include <catch2/catch.hpp>

#include "casync/folding.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kRank = 4;

/// Algorithm with factors P of rows · rank values and Q of columns · rank values.
casync::Algorithm factors() {
  return {.name = "factors",
          .encoded_bytes = [](std::int64_t elements) { return 4 * elements; },
          .stages =
              [](std::span<const std::int64_t> shape) {
                return std::vector<casync::Algorithm::Factor>{{4 * shape[0] * kRank, kRank},
                                                              {4 * shape[1] * kRank, kRank}};
              }};
}

models::Model matrices(std::size_t count, std::int64_t rows, std::int64_t columns) {
  models::Model model = test_model(std::vector<std::int64_t>(count, rows * columns));
  for (models::Gradient& gradient : model.gradients) gradient.shape = {rows, columns};
  return model;
}

/// Costs with different terms per stage. Encoding P takes 3 µs + 1 ns per element. Encoding Q,
/// which includes orthogonalisation, takes 2 ns per element and column + 7 ns per value. The decode
/// takes 1 ns per value and column of both factors.
costs::Profile stage_profile() {
  costs::Profile profile = test_profile();
  costs::CodecCosts& codec = profile.codecs["factors"];
  codec.stages = {{.a_s = 3e-6, .per_element_s = 1e-9},
                  {.per_element_rank_s = 2e-9, .per_value_s = 7e-9}};
  codec.decode_stages = {.per_value_rank_s = 1e-9};
  return profile;
}

casync::Plan stage_plan(const models::Model& model, const std::string& topology,
                        std::uint32_t nodes, std::int32_t partitions) {
  return {.topology = topology,
          .nodes = nodes,
          .algorithms = {factors()},
          .decisions = std::vector<casync::Decision>(model.gradients.size(), {0, partitions})};
}

std::int64_t time_of(const casync::TaskGraph& graph, std::uint32_t nodes, Network network,
                     const costs::Profile& profile = stage_profile()) {
  return simulate(graph, TaskCosts(profile, {factors()}), test_cluster(nodes), {.network = network})
      .iteration.count();
}

constexpr std::int64_t kNs = 1000;  // picoseconds

TEST_CASE("two stages take encode P, its mean, orthogonalise and encode Q, its mean, and decode") {
  constexpr std::int64_t kRows = 512, kColumns = 256;
  const models::Model model = matrices(1, kRows, kColumns);
  const std::int64_t elements = kRows * kColumns;
  const std::int64_t p = kRows * kRank, q = kColumns * kRank;
  const std::int64_t codec =
      3 * kUs + elements * kNs + 2 * kNs * elements * kRank + 7 * kNs * q + (p + q) * kRank * kNs;
  const Network network = GENERATE(Network::kPort, Network::kFair);
  for (const std::int64_t nodes : {2, 4, 8}) {
    CAPTURE(nodes);
    const auto n = static_cast<std::uint32_t>(nodes);
    const auto ring = casync::expand(model, stage_plan(model, "ring", n, nodes));
    const auto hops = [&](std::int64_t values) {
      return 2 * (nodes - 1) * (kOverhead + 4 * values / nodes * kPsPerByte);
    };
    CHECK(time_of(ring, n, network) == codec + hops(p) + hops(q));
    const auto library = casync::expand(model, stage_plan(model, "allreduce", n, 1));
    const auto reduce = [&](std::int64_t values) {
      const casync::Task task{.amount = 4 * values, .kind = casync::Kind::kAllReduce};
      return TaskCosts(stage_profile(), {}).all_reduce_time(task, n, test_cluster(n).link).count();
    };
    CHECK(time_of(library, n, network) == codec + reduce(p) + reduce(q));
  }
  // One of the two nodes is the server of P, the other that of Q. P's server has the mean of P
  // first: it sends its Q while the other node computes.
  const auto hop = [&](std::int64_t values) { return kOverhead + 4 * values * kPsPerByte; };
  const auto ps = casync::expand(model, stage_plan(model, "ps", 2, 1));
  CHECK(time_of(ps, 2, network) == codec + 2 * hop(p) + hop(q));
}

TEST_CASE("alone, a node encodes and decodes, and sends nothing") {
  const models::Model model = matrices(1, 64, 32);
  const std::int64_t p = 64 * kRank, q = 32 * kRank;
  const auto graph = casync::expand(model, stage_plan(model, "ps", 1, 1));
  CHECK(time_of(graph, 1, Network::kPort) ==
        3 * kUs + 64 * 32 * kNs + 2 * kNs * 64 * 32 * kRank + 7 * kNs * q + (p + q) * kRank * kNs);
}

TEST_CASE("one gradient's Q hides behind another's P") {
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  CAPTURE(topology);
  const auto time = [&](std::size_t count) {
    const models::Model model = matrices(count, 512, 256);
    return time_of(casync::expand(model, stage_plan(model, topology, 4, 4)), 4, Network::kPort);
  };
  CHECK(time(6) < 6 * time(1));
}

TEST_CASE("a group of gradients costs one call of each stage for all of them") {
  const models::Model model = matrices(2, 64, 32);
  casync::Plan plan = stage_plan(model, "ps", 1, 1);
  plan.bulk_groups = {{0, 1}};
  const std::int64_t p = 64 * kRank, q = 32 * kRank;
  CHECK(time_of(casync::expand(model, plan), 1, Network::kPort) ==
        3 * kUs +
            2 * (64 * 32 * kNs + 2 * kNs * 64 * 32 * kRank + 7 * kNs * q + (p + q) * kRank * kNs));
}

TEST_CASE("folded, stages take the same time to the picosecond") {
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  const Network network = GENERATE(Network::kPort, Network::kFair);
  CAPTURE(topology);
  const models::Model model = matrices(3, 300, 200);
  const casync::Plan plan = stage_plan(model, topology, 4, 4);
  REQUIRE(casync::foldable(model, plan).kind == casync::Foldability::kExact);
  CHECK(time_of(casync::expand(model, plan), 4, network) ==
        time_of(casync::expand(model, plan, casync::Folding::kFolded), 4, network));
}

TEST_CASE("a profile without costs of the stages is refused") {
  costs::Profile profile = stage_profile();
  profile.codecs["factors"].stages.pop_back();
  const models::Model model = matrices(1, 64, 32);
  const auto graph = casync::expand(model, stage_plan(model, "ps", 2, 1));
  CHECK_THROWS_WITH(time_of(graph, 2, Network::kPort, profile), Contains("hipress-profile"));
}

}  // namespace
}  // namespace hipress::sim
