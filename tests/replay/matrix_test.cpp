// Tests every combination of N = 1 … 5 ranks, K from 1 to 2N, all topologies, and raw gradients or
// any codec that the topology carries. Gradients have 1, 3, 31, 32, 33 and 1000003 elements. Models
// without gradients are tested, too.

#include <catch2/catch.hpp>

#include "replay/replay.hpp"
#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;

namespace {

const std::vector<std::int64_t> kSizes{1, 3, 31, 32, 33, 1000003};
const std::vector<std::string> kTopologies{"ps", "ring", "allreduce"};

std::vector<std::string> forms() {
  std::vector<std::string> names{"raw"};
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (!row.additive) names.emplace_back(row.name);  // additive ones need shapes: stages_test.cpp
  }
  return names;
}

/// Two iterations, because the second one uses the residuals of the first.
ReplayOptions two_iterations() { return {.warmup = 1, .iterations = 1, .progress = {}}; }

void verify_all(const std::string& transport, std::uint32_t nodes, std::int32_t partitions) {
  for (const std::string& topology : kTopologies) {
    for (const std::string& form : forms()) {
      if (topology == "allreduce" && !can_be_summed(form)) continue;
      INFO(transport << ", " << topology << ", N = " << nodes << ", K = " << partitions << ", "
                     << form);
      const Case made = make_case(topology, nodes, partitions, form, kSizes);
      CHECK(
          replay_threads(transport, made.model, made.plan, made.graph, two_iterations()).verified);
    }
  }
}

void verify_up_to_2n(std::uint32_t nodes) {
  for (std::uint32_t k = 1; k <= 2 * nodes; ++k) {
    verify_all("memory", nodes, static_cast<std::int32_t>(k));
  }
}

}  // namespace

TEST_CASE("one rank verifies for all topologies, codecs, sizes and K up to 2N", "[slow]") {
  verify_up_to_2n(1);
}
TEST_CASE("two ranks verify for all topologies, codecs, sizes and K up to 2N", "[slow]") {
  verify_up_to_2n(2);
}
TEST_CASE("three ranks verify for all topologies, codecs, sizes and K up to 2N", "[slow]") {
  verify_up_to_2n(3);
}
TEST_CASE("four ranks verify for all topologies, codecs, sizes and K up to 2N", "[slow]") {
  verify_up_to_2n(4);
}
TEST_CASE("five ranks verify for all topologies, codecs, sizes and K up to 2N", "[slow]") {
  verify_up_to_2n(5);
}

TEST_CASE("a model without gradients is replayed by any number of ranks", "[slow]") {
  for (const std::string& topology : kTopologies) {
    for (const std::string transport : {"memory", "gloo", "tcp"}) {
      for (std::uint32_t nodes = 1; nodes <= 5; ++nodes) {
        const Case made = make_case(topology, nodes, 1, "raw", {});
        CHECK(replay_threads(transport, made.model, made.plan, made.graph, two_iterations())
                  .verified);
      }
    }
  }
}

// Over TCP, every N, every topology and every codec occurs, with K below, at and above N.
TEST_CASE("over TCP, ranks verify for all topologies, all codecs and sizes", "[slow]") {
  verify_all("tcp", 1, 1);
  verify_all("tcp", 2, 4);
  verify_all("tcp", 3, 2);
  verify_all("tcp", 4, 4);
  verify_all("tcp", 5, 6);
}

TEST_CASE("gloo's all-reduce verifies in fp32, fp16 and bf16", "[slow]") {
  for (const std::uint32_t nodes : {2u, 3u, 5u}) {
    for (const std::string form : {"raw", "fp16", "bf16"}) {
      INFO("N = " << nodes << ", " << form);
      const Case made = make_case("allreduce", nodes, 1, form, kSizes);
      CHECK(replay_threads("gloo", made.model, made.plan, made.graph, two_iterations()).verified);
    }
  }
}
