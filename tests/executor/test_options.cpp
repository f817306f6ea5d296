// Bulk groups, batches, all-reduces and no pipelining, each with each: whatever a plan may ask for,
// every rank ends with the right values.

#include <catch2/catch.hpp>

#include "executor/replay.hpp"
#include "executor/verify.hpp"
#include "tests/executor/fixtures.hpp"

using namespace hipress;
using namespace hipress::executor;
using Catch::Matchers::Contains;

namespace {

/// Small ones that a group can hold, a large one among them, and lengths of all remainders mod 32.
const std::vector<std::int64_t> kSizes{33, 1, 20000, 64, 5000, 31, 100, 3};
constexpr std::int64_t kGroupBelow = 1024 * 4;  // bytes: all but two of them

struct Features {
  std::string strategy;
  std::string form;  // "raw", "mixed", or an algorithm
  bool bulk, batch, raw_allreduce, pipelining;
};

std::string to_string(const Features& f) {
  return f.strategy + " " + f.form + (f.bulk ? " bulk" : "") + (f.batch ? " batch" : "") +
         (f.raw_allreduce ? " allreduce" : "") + (f.pipelining ? "" : " no pipelining");
}

Case make(const Features& features, std::uint32_t nodes, std::int32_t partitions) {
  Case made{.model = make_model(kSizes), .plan = {}, .graph = {}};
  const bool mixed = features.form == "mixed";
  made.plan = make_plan(made.model, features.strategy, nodes, partitions,
                        codec_or_raw(mixed ? "terngrad" : features.form));
  casync::Plan& plan = made.plan.plan;
  for (std::size_t g = 0; g < kSizes.size(); g += 3) {
    if (mixed) plan.decisions[g].algorithm = casync::kRaw;
  }
  for (std::size_t g = 0; g < kSizes.size(); ++g) {
    made.model.gradients[g].ready_s = 1e-4 * static_cast<double>((g * 5) % 4);
  }
  if (features.bulk) plan.bulk.threshold_bytes = kGroupBelow;
  if (features.batch) plan.batch.threshold_bytes = 1 << 20;
  if (features.raw_allreduce) plan.raw_strategy = "allreduce";
  plan.pipelining = features.pipelining;
  made.graph = casync::expand(made.model, plan);
  casync::check(made.graph);
  return made;
}

std::vector<Features> all_features() {
  std::vector<Features> all;
  for (const std::string strategy : {"ps", "ring"}) {
    for (const std::string form : {"raw", "mixed", "onebit", "dgc", "fp16"}) {
      for (int bits = 0; bits < 16; ++bits) {
        all.push_back({.strategy = strategy,
                       .form = form,
                       .bulk = (bits & 1) != 0,
                       .batch = (bits & 2) != 0,
                       .raw_allreduce = (bits & 4) != 0,
                       .pipelining = (bits & 8) == 0});
      }
    }
  }
  return all;
}

/// Two iterations, since the second one meets the residuals of the first and dirty padding.
ReplayOptions two_iterations() { return {.warmup = 1, .iterations = 1, .progress = {}}; }

bool verifies(const std::string& transport, const Case& made) {
  return replay_threads(transport, made.model, made.plan, made.graph, two_iterations()).verified;
}

}  // namespace

TEST_CASE("bulk, batch, all-reduce and no pipelining verify with each other on three ranks") {
  for (const Features& features : all_features()) {
    INFO(to_string(features));
    CHECK(verifies("memory", make(features, 3, 2)));
  }
}

TEST_CASE("bulk, batch, all-reduce and no pipelining verify on one to five ranks over TCP") {
  std::uint32_t nodes = 1;
  for (const Features& features : all_features()) {
    if (features.bulk + features.batch + features.raw_allreduce < 2) continue;
    INFO(to_string(features) << ", N = " << nodes);
    CHECK(verifies("gloo", make(features, nodes, static_cast<std::int32_t>(nodes))));
    nodes = nodes % 5 + 1;
  }
}
