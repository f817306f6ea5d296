// Tests all combinations of bulk groups, batches, all-reduces of raw gradients, and no pipelining:
// every rank must end with the right values.

#include <catch2/catch.hpp>
#include <cstring>

#include "replay/replay.hpp"
#include "replay/verify.hpp"
#include "runtime/operations.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Matchers::Contains;

namespace {

/// Elements of small gradients, which are grouped, and of large ones; several remainders mod 32.
const std::vector<std::int64_t> kSizes{33, 1, 20000, 64, 5000, 31, 100, 3};
constexpr std::int64_t kGroupBelow = 1024 * 4;  // bytes; all gradients but two are smaller

struct Features {
  std::string topology;
  std::string form;  // "raw", "mixed", or an algorithm
  bool bulk, batch, raw_allreduce, pipelining;
};

std::string to_string(const Features& f) {
  return f.topology + " " + f.form + (f.bulk ? " bulk" : "") + (f.batch ? " batch" : "") +
         (f.raw_allreduce ? " allreduce" : "") + (f.pipelining ? "" : " no pipelining");
}

Case make(const Features& features, std::uint32_t nodes, std::int32_t partitions) {
  Case made{.model = make_model(kSizes), .plan = {}, .graph = {}};
  const bool mixed = features.form == "mixed";
  made.plan = make_plan(made.model, features.topology, nodes, partitions,
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
  if (features.raw_allreduce) plan.raw_topology = "allreduce";
  plan.pipelining = features.pipelining;
  made.graph = casync::expand_to_run(made.model, plan);
  casync::check(made.graph);
  return made;
}

std::vector<Features> all_features() {
  std::vector<Features> all;
  for (const std::string topology : {"ps", "ring", "allreduce"}) {
    for (const std::string form : {"raw", "mixed", "onebit", "dgc", "fp16"}) {
      if (topology == "allreduce" && (form == "mixed" || !can_be_summed(form))) continue;
      for (int bits = 0; bits < 16; ++bits) {
        all.push_back({.topology = topology,
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

/// Two iterations: the second one uses residuals of the first, and meets padding that is not zero.
ReplayOptions two_iterations() { return {.warmup = 1, .iterations = 1, .progress = {}}; }

bool verifies(const std::string& transport, const Case& made) {
  return replay_threads(transport, made.model, made.plan, made.graph, two_iterations()).verified;
}

/// Bytes of a number in the form in which an all-reduce carries it.
std::vector<std::byte> carried(const std::string& form, float value) {
  std::vector<std::byte> bytes(sizeof value);
  if (form == "raw") {
    std::memcpy(bytes.data(), &value, sizeof value);
  } else {
    encode(casync::Task{}, 1, *kernels::make_codec(form), {{&value, 1}, bytes, {}, {}});
  }
  return bytes;
}

/// An endpoint whose library adds `error`, a number as carried() gives it, to one element of every
/// sum.
class WrongLibrary : public transport::Endpoint {
 public:
  WrongLibrary(transport::Endpoint& endpoint, std::vector<std::byte> error, std::size_t element)
      : endpoint_(endpoint), error_(std::move(error)), element_(element) {}
  int rank() const override { return endpoint_.rank(); }
  int size() const override { return endpoint_.size(); }
  std::unique_ptr<transport::Exchange> prepare(std::vector<transport::Outgoing> outgoing,
                                               std::vector<transport::Incoming> incoming,
                                               transport::Events events) override {
    return endpoint_.prepare(std::move(outgoing), std::move(incoming), std::move(events));
  }
  std::unique_ptr<transport::Collective> collective() override {
    return std::make_unique<Sum>(endpoint_.collective(), error_, element_);
  }
  std::vector<std::string> all_gather(const std::string& mine) override {
    return endpoint_.all_gather(mine);
  }
  void abort(int culprit, const std::string& reason) noexcept override {
    endpoint_.abort(culprit, reason);
  }

 private:
  class Sum : public transport::Collective {
   public:
    Sum(std::unique_ptr<transport::Collective> right, std::vector<std::byte> error,
        std::size_t element)
        : right_(std::move(right)), error_(std::move(error)), element_(element) {}
    void all_reduce(std::span<std::byte> values, const transport::Addition& addition) override {
      right_->all_reduce(values, addition);
      addition.add(values.data() + element_ * addition.value_bytes, error_.data(), 1);
    }
    transport::ShardCollectives* shards() override { return right_->shards(); }
    void interrupt() noexcept override { right_->interrupt(); }

   private:
    std::unique_ptr<transport::Collective> right_;
    std::vector<std::byte> error_;
    std::size_t element_;
  };

  transport::Endpoint& endpoint_;
  std::vector<std::byte> error_;
  std::size_t element_;
};

/// Error messages of three ranks that all-reduce one gradient. In every iteration, the library adds
/// `wrong_by` to one element on `wrong_rank`, or on all ranks (-1).
std::string messages_of_a_wrong_library(std::int64_t elements, int wrong_rank,
                                        std::size_t wrong_element, const std::string& form = "raw",
                                        float wrong_by = 1e-3f) {
  Case made{.model = make_model({elements}), .plan = {}, .graph = {}};
  made.plan = make_plan(made.model, "allreduce", 3, 1, codec_or_raw(form));
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  const auto errors = run_ranks(3, [&](transport::Endpoint& endpoint) {
    const bool wrong = wrong_rank < 0 || endpoint.rank() == wrong_rank;
    WrongLibrary library(endpoint, carried(form, wrong ? wrong_by : 0), wrong_element);
    replay::replay(library, made.model, made.plan, made.graph, two_iterations());
  });
  std::string all;
  for (const auto& error : errors) all += message_of(error) + "\n";
  return all;
}

}  // namespace

TEST_CASE("bulk, batch, all-reduce and no pipelining verify with each other on three ranks",
          "[slow]") {
  for (const Features& features : all_features()) {
    INFO(to_string(features));
    CHECK(verifies("memory", make(features, 3, 2)));
  }
}

TEST_CASE("bulk, batch, all-reduce and no pipelining verify on one to five ranks over TCP",
          "[slow]") {
  std::uint32_t nodes = 1;
  for (const Features& features : all_features()) {
    if (features.bulk + features.batch + features.raw_allreduce < 2) continue;
    INFO(to_string(features) << ", N = " << nodes);
    CHECK(verifies("tcp", make(features, nodes, static_cast<std::int32_t>(nodes))));
    nodes = nodes % 5 + 1;
  }
}

TEST_CASE("a wrong value in a bulk group is reported with its own gradient's name") {
  // 10 + 150 elements and 32 zeros make two slices. Element 20 of the first is g1's element 10.
  Case made{.model = make_model({10, 150}), .plan = {}, .graph = {}};
  made.plan = make_plan(made.model, "ring", 2, 1, codec_or_raw("fp16"));
  made.plan.plan.bulk.threshold_bytes = 1000;
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  const auto errors = run_ranks(2, [&](transport::Endpoint& endpoint) {
    plans::ResolvedPlan plan = made.plan;
    if (endpoint.rank() == 1) plan.codecs[0] = std::make_shared<WrongCodec>(20);
    replay::replay(endpoint, made.model, plan, made.graph, two_iterations());
  });
  for (const auto& error : errors) {
    CHECK_THAT(message_of(error), Contains("gradient 'g1', node 1, element 10: got"));
  }
}

TEST_CASE("a library's sum that is wrong, or not the same everywhere, does not verify") {
  CHECK_THAT(messages_of_a_wrong_library(100, -1, 7),
             Contains("gradient 'g0', element 7: the library gives"));
  CHECK_THAT(messages_of_a_wrong_library(100, 2, 7),
             Contains("gradient 'g0', node 2, element 7: got"));
}

TEST_CASE("a library's sum in half precision that is off by more than rounding does not verify") {
  // With three nodes and values up to 1, rounding changes the mean by at most (1 + 2^-11)^3 - 1 =
  // 0.0015 in fp16, and (1 + 2^-8)^3 - 1 = 0.012 in bf16.
  const std::vector<std::pair<std::string, float>> beyond{{"fp16", 0.0035f}, {"bf16", 0.03f}};
  for (const auto& [form, error] : beyond) {
    CAPTURE(form);
    for (const std::size_t element : {std::size_t{7}, std::size_t{99}}) {
      const std::string where = ", element " + std::to_string(element);
      CHECK_THAT(messages_of_a_wrong_library(101, -1, element, form, error),
                 Contains("gradient 'g0'" + where + ": the library gives"));
      CHECK_THAT(messages_of_a_wrong_library(101, 2, element, form, error),
                 Contains(where + ": got"));
    }
    CHECK_THAT(messages_of_a_wrong_library(101, -1, 7, form, 0), Contains("no error"));
  }
}

TEST_CASE("a library's sum that is wrong in a later stretch of a large gradient does not verify") {
  // The gradient has two stretches of 2^20 elements and one of 100. A different rank checks each.
  constexpr std::int64_t kElements = (2 << 20) + 100;
  for (const std::size_t element : {(std::size_t{1} << 20) + 20000, std::size_t{2 << 20} + 99}) {
    CHECK_THAT(
        messages_of_a_wrong_library(kElements, -1, element),
        Contains("gradient 'g0', element " + std::to_string(element) + ": the library gives"));
    CHECK_THAT(messages_of_a_wrong_library(kElements, 0, element),
               Contains(", element " + std::to_string(element) + ": got"));
  }
}
