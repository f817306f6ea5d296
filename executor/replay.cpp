#include "executor/replay.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <stdexcept>
#include <thread>

#include "executor/clock.hpp"
#include "executor/gather.hpp"
#include "executor/inputs.hpp"
#include "executor/runtime.hpp"
#include "executor/timelines.hpp"
#include "executor/verify.hpp"

namespace hipress::executor {
namespace {

using std::chrono::nanoseconds;

double seconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double process_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto to_s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return to_s(usage.ru_utime) + to_s(usage.ru_stime);
}

/// One rank's gradients in one piece of memory, unit by unit.
class Gradients {
 public:
  explicit Gradients(const casync::Layout& layout) {
    std::int64_t elements = 0;
    for (const casync::Unit& unit : layout.units) elements += taken(unit);
    // Left uninitialised: the first inputs touch every page anyway.
    memory_.reset(new float[static_cast<std::size_t>(elements)]);
    float* next = memory_.get();
    for (const casync::Unit& unit : layout.units) {
      units_.emplace_back(next, static_cast<std::size_t>(unit.members.empty() ? 0 : unit.elements));
      next += taken(unit);
    }
  }
  const std::vector<std::span<float>>& units() const { return units_; }

 private:
  /// No two units share a cache line; a gradient that is in a group has no room of its own.
  static std::int64_t taken(const casync::Unit& unit) {
    return unit.members.empty() ? 0 : (unit.elements + 15) / 16 * 16;
  }

  std::unique_ptr<float[]> memory_;
  std::vector<std::span<float>> units_;
};

/// One rank's part in a replay: prepared once, run iteration after iteration.
class Replay {
 public:
  Replay(transport::Endpoint& endpoint, const models::Model& model, const plans::ResolvedPlan& plan,
         const casync::TaskGraph& graph, const ReplayOptions& options)
      : endpoint_(endpoint),
        model_(model),
        options_(options),
        program_(graph, model, plan, static_cast<std::uint32_t>(endpoint.rank())),
        gradients_(program_.layout()),
        runtime_(endpoint, program_, gradients_.units(), states_,
                 {.seed = options.seed, .timeout_s = options.timeout_s}),
        clock_(endpoint) {
    if (options.verify) {
      verifier_ = std::make_unique<Verifier>(endpoint, graph, model, plan, options.seed);
    }
  }

  ReplayResult run() {
    for (int i = 0; i < options_.warmup + options_.iterations; ++i) {
      run_iteration(static_cast<std::uint64_t>(i), i >= options_.warmup);
    }
    result_.verified = verifier_ != nullptr;
    if (options_.timeline && !result_.iteration_s.empty()) {
      result_.timeline = gather_timeline(endpoint_, program_, recorded_[median_iteration()]);
    }
    if (options_.every_timeline) {
      for (const RecordedRun& run : recorded_)
        result_.timelines.push_back(gather_timeline(endpoint_, program_, run));
    }
    return std::move(result_);
  }

 private:
  /// What a rank tells the others after an iteration.
  struct Outcome {
    nanoseconds last_end;
    std::int64_t bytes_sent;
  };

  void run_iteration(std::uint64_t iteration, bool measured) {
    for (std::uint32_t u = 0; u < gradients_.units().size(); ++u) {
      fill_unit({.seed = options_.seed, .iteration = iteration, .node = program_.node()},
                program_.layout().units[u], model_, 0, gradients_.units()[u]);
    }
    if (options_.progress) options_.progress(static_cast<int>(iteration));
    runtime_.begin(iteration);
    const Clock::time_point start = clock_.agree_on_start();
    runtime_.wait_until(start);
    const double cpu_before_s = process_cpu_s();
    runtime_.start(start);
    produce_gradients(start);
    runtime_.wait();
    const std::vector<Outcome> outcomes = gather(endpoint_, outcome(start));
    const double cpu_s = process_cpu_s() - cpu_before_s;
    // A second exchange, so that no rank begins to verify while another still reads its CPU time.
    const double rank_zeros_cpu_s = gather(endpoint_, cpu_s).front();
    if (measured) record(start, outcomes, rank_zeros_cpu_s);
    if (verifier_) verifier_->verify(iteration, gradients_.units());
  }

  /// Backward: hands over every gradient at its ready time, those of one instant together.
  void produce_gradients(Clock::time_point start) {
    const std::span<const ReadyTime> schedule = program_.schedule();
    for (std::size_t next = 0; next < schedule.size();) {
      const Clock::time_point due = start + schedule[next].after_start;
      if (options_.backward == Backward::kSpin) {
        while (Clock::now() < due) {
        }
      }
      runtime_.wait_until(due);
      const Clock::time_point now = Clock::now();
      for (; next < schedule.size() && start + schedule[next].after_start <= now; ++next) {
        runtime_.gradient_ready(schedule[next].gradient, now);
      }
    }
  }

  Outcome outcome(Clock::time_point start) const {
    Clock::time_point last = start;
    for (const Interval& interval : runtime_.intervals()) last = std::max(last, interval.end);
    return {last - start, runtime_.bytes_sent()};
  }

  void record(Clock::time_point start, const std::vector<Outcome>& outcomes, double cpu_s) {
    nanoseconds last_end{};
    result_.bytes_sent.clear();
    for (const Outcome& outcome : outcomes) {
      last_end = std::max(last_end, outcome.last_end);
      result_.bytes_sent.push_back(outcome.bytes_sent);
    }
    result_.iteration_s.push_back(seconds(last_end));
    result_.process_cpu_s.push_back(cpu_s);
    if (options_.timeline || options_.every_timeline)
      recorded_.push_back(record_run(runtime_.intervals(), start));
  }

  std::size_t median_iteration() const {
    std::vector<std::size_t> order(result_.iteration_s.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
    std::ranges::nth_element(order, middle, {},
                             [this](std::size_t i) { return result_.iteration_s[i]; });
    return *middle;
  }

  transport::Endpoint& endpoint_;
  const models::Model& model_;
  ReplayOptions options_;
  Program program_;
  Gradients gradients_;
  kernels::StateStore states_;
  Runtime runtime_;
  CommonClock clock_;
  std::unique_ptr<Verifier> verifier_;
  std::vector<RecordedRun> recorded_;
  ReplayResult result_;
};

void check_arguments(const transport::Endpoint& endpoint, const models::Model& model,
                     const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                     const ReplayOptions& options) {
  if (static_cast<std::uint32_t>(endpoint.size()) != graph.nodes) {
    throw std::invalid_argument(
        fmt::format("the graph has {} nodes, the job {} ranks", graph.nodes, endpoint.size()));
  }
  if (plan.plan.decisions.size() != model.gradients.size()) {
    throw std::invalid_argument(fmt::format("the plan decides {} gradients, the model has {}",
                                            plan.plan.decisions.size(), model.gradients.size()));
  }
  if (options.iterations < 0 || options.warmup < 0 || !(options.timeout_s > 0)) {
    throw std::invalid_argument(
        "iterations and warm-ups must not be negative, and the timeout must be positive");
  }
}

/// Of all ranks' errors the one that says most: what went wrong on a rank itself before who was
/// lost.
void rethrow_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr lost;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const transport::PeerError&) {
      if (!lost) lost = error;
    }
  }
  if (lost) std::rethrow_exception(lost);
}

}  // namespace

ReplayResult replay(transport::Endpoint& endpoint, const models::Model& model,
                    const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                    const ReplayOptions& options) {
  try {
    check_arguments(endpoint, model, plan, graph, options);
    return Replay(endpoint, model, plan, graph, options).run();
  } catch (const VerificationError&) {
    throw;  // the same on every rank
  } catch (const transport::PeerError& error) {
    endpoint.abort(error.culprit, error.what());
    throw;
  } catch (const std::exception& error) {
    // Harmless where every rank fails alike; where this one is alone, the others must not wait for
    // it.
    endpoint.abort(endpoint.rank(), fmt::format("rank {}: {}", endpoint.rank(), error.what()));
    throw;
  }
}

ReplayResult replay_threads(const std::string& transport, const models::Model& model,
                            const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                            const ReplayOptions& options) {
  static std::atomic<int> jobs{0};
  const transport::TransportRow& row = transport::find_transport(transport);
  const std::string job = fmt::format("threads-{}-{}", getpid(), jobs++);
  std::vector<ReplayResult> results(graph.nodes);
  std::vector<std::exception_ptr> errors(graph.nodes);
  const auto run_rank = [&](std::uint32_t rank) {
    try {
      const auto endpoint = row.connect({.rank = static_cast<int>(rank),
                                         .size = static_cast<int>(graph.nodes),
                                         .job = job,
                                         .plan = {},
                                         .rendezvous = "local:" + job,
                                         .interface = {},
                                         .timeout_s = options.timeout_s});
      results[rank] = replay(*endpoint, model, plan, graph, options);
    } catch (...) {
      errors[rank] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> ranks;
    for (std::uint32_t rank = 0; rank < graph.nodes; ++rank) ranks.emplace_back(run_rank, rank);
  }
  rethrow_cause(errors);
  return std::move(results.at(0));
}

}  // namespace hipress::executor
