// Tests, for every algorithm and every topology that averages, that the results applied over many
// steps sum to the mean of the submitted gradients, even if some results are never applied.

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <random>
#include <stdexcept>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "runtime/engine.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::runtime;

namespace {

constexpr int kRanks = 3;
constexpr int kSteps = 400;
constexpr int kMostDraining = 3000;

/// Use that ranks make of the steps' results.
enum class Course : std::uint8_t {
  kAllApplied,
  kEverySecondUnused,  ///< no rank uses the second gradient in odd steps
  kSomeSkipped,        ///< in some steps one rank overflows, and all ranks skip the step
};
constexpr std::uint32_t kSecond = 1;

std::vector<Gradient> gradients() {
  std::vector<Gradient> all;
  for (const char* name : {"first", "second"}) {
    all.push_back({.name = name, .elements = 32 * 32, .shape = {32, 32}});
  }
  all.push_back({.name = "bias", .elements = 40, .shape = {40}});
  return all;
}

using Values = std::vector<std::vector<float>>;  // per gradient

Values constant_gradients(int rank) {
  Values values;
  std::mt19937 random(static_cast<unsigned>(rank + 1));
  std::normal_distribution<float> normal;
  for (const Gradient& gradient : gradients()) {
    values.emplace_back(static_cast<std::size_t>(gradient.elements));
    for (float& value : values.back()) value = normal(random);
  }
  return values;
}

struct Sums {
  std::vector<std::vector<double>> applied, submitted;  ///< per gradient: sum over all steps

  Sums() {
    for (const Gradient& gradient : gradients()) {
      const auto elements = static_cast<std::size_t>(gradient.elements);
      applied.emplace_back(elements);
      submitted.emplace_back(elements);
    }
  }
  static void add(std::vector<double>& sum, const std::vector<float>& values, double times) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += times * values[i];
  }
  /// Projection of the applied sums on the submitted ones; 1 if all was applied.
  double gain() const { return product(applied, submitted) / product(submitted, submitted); }
  /// Distance between applied and submitted sums, relative to the submitted ones.
  double distance() const {
    const double between =
        product(applied, applied) - 2 * product(applied, submitted) + product(submitted, submitted);
    return std::sqrt(std::max(0.0, between) / product(submitted, submitted));
  }
  static double product(const std::vector<std::vector<double>>& a,
                        const std::vector<std::vector<double>>& b) {
    double sum = 0;
    for (std::size_t g = 0; g < a.size(); ++g) {
      for (std::size_t i = 0; i < a[g].size(); ++i) sum += a[g][i] * b[g][i];
    }
    return sum;
  }
};

/// One rank's part of the training.
class Trainer {
 public:
  Trainer(Engine& engine, int rank, Course course, Sums* sums)
      : engine_(engine), rank_(rank), course_(course), sums_(sums) {
    for (int other = 0; other < kRanks; ++other) all_.push_back(constant_gradients(other));
  }

  void train(int steps = kSteps) {
    for (int step = 0; step < steps; ++step) {
      const bool unused = course_ == Course::kEverySecondUnused && step % 2 == 1;
      const bool skipped = course_ == Course::kSomeSkipped && step % 50 == 17;
      Values values = all_[static_cast<std::size_t>(rank_)];
      if (unused) values[kSecond].assign(values[kSecond].size(), 0.0f);
      if (skipped && rank_ == 1) values[0][5] = std::numeric_limits<float>::infinity();
      synchronise(values);
      if (engine_.all_finite() == skipped) throw std::runtime_error("all_finite is wrong");
      if (skipped) engine_.discard(std::vector<std::uint32_t>{0, 1, 2});
      if (unused) engine_.discard(std::vector<std::uint32_t>{kSecond});
      for (std::uint32_t g = 0; g < values.size(); ++g) {
        if (skipped || (unused && g == kSecond)) continue;
        apply(g, values[g]);
        for (int other = 0; other < kRanks && sums_ != nullptr; ++other) {
          Sums::add(sums_->submitted[g], all_[static_cast<std::size_t>(other)][g], 1.0 / kRanks);
        }
      }
    }
  }

  /// Takes this rank's residuals and adds them to `held`, divided by the number of ranks, as if
  /// they were averaged with its next gradients.
  void flush(std::vector<std::vector<double>>& held) {
    Values values = all_.front();
    for (std::uint32_t g = 0; g < values.size(); ++g) {
      engine_.take_residual(g, values[g]);
      Sums::add(held[g], values[g], 1.0 / kRanks);
    }
    for (std::uint32_t g = 0; g < values.size(); ++g) {
      engine_.take_residual(g, values[g]);
      for (const float left : values[g]) {
        if (left != 0) throw std::runtime_error("a residual is left");
      }
    }
  }

  /// Runs steps with zero gradients until the residuals have been sent.
  void drain() {
    const Values zeros = [&] {
      Values made = all_.front();
      for (std::vector<float>& gradient : made) gradient.assign(gradient.size(), 0.0f);
      return made;
    }();
    for (int step = 0, quiet = 0; step < kMostDraining && quiet < 2 * kRanks; ++step) {
      Values values = zeros;
      synchronise(values);
      double squares = 0;
      for (std::uint32_t g = 0; g < values.size(); ++g) {
        apply(g, values[g]);
        for (const float value : values[g]) squares += double(value) * value;
      }
      quiet = squares < 1e-8 ? quiet + 1 : 0;
    }
  }

 private:
  void synchronise(Values& values) {
    std::vector<Work> works;
    for (std::uint32_t g = 0; g < values.size(); ++g) {
      works.push_back(engine_.submit(
          g, {.data = values[g].data(), .elements = static_cast<std::int64_t>(values[g].size())}));
    }
    for (const Work& work : works) work.wait();
  }
  void apply(std::uint32_t gradient, const std::vector<float>& mean) {
    if (sums_ != nullptr) Sums::add(sums_->applied[gradient], mean, 1);
  }

  Engine& engine_;
  int rank_;
  Course course_;
  Sums* sums_;
  std::vector<Values> all_;
};

Sums train(const std::shared_ptr<const Compiled>& compiled, Course course) {
  Sums sums;
  const std::vector<std::exception_ptr> errors = run_ranks(
      kRanks,
      [&](transport::Endpoint& endpoint) {
        Engine engine(endpoint, compiled);
        Trainer trainer(engine, endpoint.rank(), course, endpoint.rank() == 0 ? &sums : nullptr);
        trainer.train();
        trainer.drain();
      },
      "memory");
  for (const std::exception_ptr& error : errors) REQUIRE(message_of(error) == "no error");
  return sums;
}

/// Compiles a plan that compresses all gradients, in one bulk group if `grouped`. Null if the
/// topology cannot run the algorithm.
std::shared_ptr<const Compiled> compiled_of(const std::string& algorithm,
                                            const std::string& topology, bool grouped) {
  try {
    const models::Model model = model_of(gradients());
    plans::ResolvedPlan plan = plans::resolve_plan(
        "all", {.model = model, .topology = topology, .nodes = kRanks, .algorithm = algorithm});
    if (grouped) plan.plan.bulk.threshold_bytes = 1 << 20;
    return compile(gradients(), std::move(plan));
  } catch (const io::InputError&) {
    return nullptr;
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
}

std::vector<std::string> averaging_topologies() {
  std::vector<std::string> names;
  for (const casync::Topology* const row : casync::topologies()) {
    if (row->operation == casync::Operation::kMean) names.emplace_back(row->name);
  }
  return names;
}

/// All algorithms, and in addition 4-bit floats with random rounding.
std::vector<std::string> all_algorithms() {
  std::vector<std::string> texts = {"fp4block(stochastic=1)"};
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) texts.emplace_back(row.name);
  return texts;
}

/// Trains a few steps, then takes all residuals and applies them at once.
Sums train_and_flush(const std::shared_ptr<const Compiled>& compiled) {
  constexpr int kFew = 7;
  Sums sums;
  std::mutex mutex;
  const std::vector<std::exception_ptr> errors = run_ranks(
      kRanks,
      [&](transport::Endpoint& endpoint) {
        Engine engine(endpoint, compiled);
        Trainer trainer(engine, endpoint.rank(), Course::kAllApplied,
                        endpoint.rank() == 0 ? &sums : nullptr);
        trainer.train(kFew);
        endpoint.all_gather("trained");  // rank 0 adds to the sums before this
        const std::lock_guard lock(mutex);
        trainer.flush(sums.applied);
      },
      "memory");
  for (const std::exception_ptr& error : errors) REQUIRE(message_of(error) == "no error");
  return sums;
}

/// Trains with every algorithm and every topology that runs it, with and without a bulk group, and
/// checks that the applied results sum to the mean of the gradients. `takes` is called for each
/// combination with a course; false: it is left out.
void check_conservation(const std::function<bool()>& takes) {
  for (const std::string& algorithm : all_algorithms()) {
    const kernels::CodecTraits traits = kernels::make_codec(algorithm)->traits();
    CHECK_FALSE(traits.own_optimizer);
    // Without residuals, the error of random rounding averages out over the steps. The error of
    // rounding to nearest is the same in every step, but has both signs. fp4block rounds to E3M0's
    // eight magnitudes: the error is 18 % for normally distributed numbers (docs/kernels.md), and
    // up to sqrt(3) times as much after two or three independent encodings. The gain is below 1,
    // too, as numbers between two magnitudes are more often nearer to the smaller one.
    const bool few_magnitudes = algorithm == "fp4block";
    const double farthest = few_magnitudes                             ? 0.181 * std::sqrt(3)
                            : traits.error_feedback || traits.additive ? 0.02
                                                                       : 0.08;
    const double gain_margin = few_magnitudes ? 0.05 : 0.02;
    int topologies = 0;
    for (const std::string& topology : averaging_topologies()) {
      for (const bool grouped : {false, true}) {
        const auto compiled = compiled_of(algorithm, topology, grouped);
        if (compiled == nullptr) continue;
        ++topologies;
        for (const Course course :
             {Course::kAllApplied, Course::kEverySecondUnused, Course::kSomeSkipped}) {
          if (grouped && course == Course::kAllApplied) continue;  // the next course covers it
          if (!takes()) continue;
          CAPTURE(algorithm, topology, grouped, static_cast<int>(course));
          const Sums sums = train(compiled, course);
          CHECK(sums.gain() == Approx(1).margin(gain_margin));
          CHECK(sums.distance() < farthest);
        }
      }
    }
    CAPTURE(algorithm);
    CHECK(topologies >= 4);
  }
}

}  // namespace

TEST_CASE("what is applied sums to the mean of gradients, for every algorithm and topology",
          "[slow]") {
  // Tries every third combination, so that every course meets every topology with some algorithm.
  check_conservation([turn = 0]() mutable { return turn++ % 3 == 0; });
}

TEST_CASE("what is applied sums to the mean of gradients, in every course", "[long]") {
  check_conservation([] { return true; });
}

TEST_CASE("residuals that are taken complete what was applied, for every algorithm and topology") {
  int tried = 0;
  for (const std::string& algorithm : all_algorithms()) {
    if (!kernels::make_codec(algorithm)->traits().error_feedback) continue;
    for (const std::string& topology : averaging_topologies()) {
      for (const bool grouped : {false, true}) {
        const auto compiled = compiled_of(algorithm, topology, grouped);
        if (compiled == nullptr) continue;
        ++tried;
        CAPTURE(algorithm, topology, grouped);
        // Applied results and residuals add up to the submitted gradients, except for rounding.
        CHECK(train_and_flush(compiled).distance() < 1e-5);
      }
    }
  }
  CHECK(tried > 20);
}

TEST_CASE("dgc with momentum is an optimizer of its own, which is announced, and runs once") {
  const std::string algorithm = "dgc(momentum=0.9)";
  const auto compiled = compiled_of(algorithm, "allgather", false);
  REQUIRE(compiled != nullptr);
  const double gain = train(compiled, Course::kAllApplied).gain();
  CHECK(gain > 5);
  CHECK(gain < 10);  // 1 / (1 - 0.9)
  const std::string note = kernels::optimizer_note(algorithm);
  CHECK(note.find("not the mean of gradients, but up to 10 times it") != std::string::npos);
  CHECK(kernels::optimizer_note("dgc").empty());
  CHECK(kernels::optimizer_note("powersgd(rank=2)").empty());
  // In these topologies, nodes' gradients are added between encodings, so momentum would not see
  // every node's gradient once.
  for (const std::string topology : {"ps", "ring"}) {
    CHECK(compiled_of(algorithm, topology, false) == nullptr);
  }
}
