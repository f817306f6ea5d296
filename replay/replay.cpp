#include "replay/replay.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "io/error.hpp"
#include "io/memory.hpp"
#include "job/clock.hpp"
#include "job/connect.hpp"
#include "job/exhaustion.hpp"
#include "job/gather.hpp"
#include "replay/inputs.hpp"
#include "replay/room.hpp"
#include "replay/run_sample.hpp"
#include "replay/timelines.hpp"
#include "replay/verify.hpp"
#include "runtime/device_runtime.hpp"
#include "runtime/runtime.hpp"
#include "runtime/scheduling.hpp"

namespace hipress::replay {
namespace {

using std::chrono::nanoseconds;
using transport::Clock;

/// Maximum bytes of recorded iterations over all ranks. With most plans, this is enough for
/// thousands of iterations.
constexpr std::size_t kRecordBytes = std::size_t{1} << 28;

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
    // Uninitialised: the first inputs touch every page anyway.
    memory_.reset(new float[static_cast<std::size_t>(elements)]);
    float* next = memory_.get();
    for (const casync::Unit& unit : layout.units) {
      units_.emplace_back(next, static_cast<std::size_t>(unit.members.empty() ? 0 : unit.elements));
      next += taken(unit);
    }
  }
  const std::vector<std::span<float>>& units() const { return units_; }

 private:
  /// Number of elements that a unit takes: units share no cache lines, and a gradient in a group
  /// takes no memory of its own.
  static std::int64_t taken(const casync::Unit& unit) {
    return unit.members.empty() ? 0 : (unit.elements + 15) / 16 * 16;
  }

  std::unique_ptr<float[]> memory_;
  std::vector<std::span<float>> units_;
};

/// Calls `work`. If a rank is lost meanwhile and the error names no task that waits for it, adds
/// this rank's activity: "rank 2 closed the connection; rank 0 was verifying iteration 3".
template <class Work>
auto doing(int rank, std::string_view what, std::uint64_t iteration, const Work& work) {
  try {
    return work();
  } catch (const transport::PeerError& error) {
    if (!error.awaited.empty()) throw;
    throw transport::PeerError(
        error.culprit,
        fmt::format("{}; rank {} was {} iteration {}", error.what(), rank, what, iteration), {},
        error.loss);
  }
}

/// Requests of one rank that need all ranks to take part.
struct Wishes {
  bool timeline, every_timeline;
};

/// Collective. Returns the options with the requests of all ranks; often only rank 0 has any.
ReplayOptions agree(transport::Endpoint& endpoint, ReplayOptions options) {
  const Wishes mine{options.timeline, options.every_timeline};
  for (const Wishes& wishes : job::gather(endpoint, mine)) {
    options.timeline = options.timeline || wishes.timeline;
    options.every_timeline = options.every_timeline || wishes.every_timeline;
  }
  return options;
}

/// One rank's part in a replay: prepared once, then run for all iterations.
class Replay {
 public:
  Replay(transport::Endpoint& endpoint, const models::Model& model, const plans::ResolvedPlan& plan,
         const casync::TaskGraph& graph, const ReplayOptions& options)
      : endpoint_(endpoint),
        model_(model),
        options_(options),
        program_(graph, model, plan, static_cast<std::uint32_t>(endpoint.rank())),
        gradients_(program_.layout()),
        runtime_(make_runtime()),
        clock_(endpoint),
        sample_(kRecordBytes / (sizeof(RecordedRun::Times) * (graph.tasks() + 1))) {
    if (options.verify) {
      verifier_ = std::make_unique<Verifier>(endpoint, graph, model, plan, inputs());
    }
  }

  ReplayResult run() {
    for (int i = 0; i < options_.warmup + options_.iterations; ++i) {
      run_iteration(static_cast<std::uint64_t>(i), i >= options_.warmup);
    }
    result_.verified = verifier_ != nullptr;
    if (!options_.means.empty()) {
      const runtime::Ordinarily ordinarily;
      write_means(options_.means, program_.node(), model_, program_.layout(), gradients_.units());
    }
    if (!options_.save_state.empty()) {
      const runtime::Ordinarily ordinarily;
      states_.save(state_file(options_.save_state, program_.node()));
    }
    const auto last = static_cast<std::uint64_t>(options_.warmup + options_.iterations - 1);
    doing(endpoint_.rank(), "reporting after", last, [this] { report_timelines(); });
    return std::move(result_);
  }

 private:
  /// Report of a rank to the others after an iteration.
  struct Outcome {
    nanoseconds last_end;
    std::int64_t bytes_sent;
  };

  /// Resource usage of this process, since its start or during one iteration.
  struct Spent {
    double cpu_s = 0;
    double metered = 0;
  };
  Spent spent() const { return {process_cpu_s(), options_.meter ? options_.meter() : 0}; }

  Inputs inputs() const {
    return {.seed = options_.seed, .files = options_.gradients, .states = options_.load_state};
  }

  std::unique_ptr<runtime::RankRuntime> make_runtime() {
    if (!options_.device) {
      if (!options_.load_state.empty()) {
        states_.load(state_file(options_.load_state, program_.node()));
      }
      return std::make_unique<runtime::Runtime>(
          endpoint_, program_, gradients_.units(), states_,
          runtime::RuntimeOptions{.seed = options_.seed, .timeout_s = options_.timeout_s});
    }
    device_ = options_.device(endpoint_.rank());
    return std::make_unique<runtime::DeviceRuntime>(
        endpoint_, program_, gradients_.units(), *device_,
        runtime::DeviceRuntimeOptions{
            .seed = options_.seed, .timeout_s = options_.timeout_s, .nccl = options_.nccl});
  }

  void run_iteration(std::uint64_t iteration, bool measured) {
    fill(iteration);
    if (options_.progress) options_.progress(endpoint_.rank(), static_cast<int>(iteration));
    const auto while_doing = [&](std::string_view what, const auto& work) {
      return doing(endpoint_.rank(), what, iteration, work);
    };
    const Clock::time_point start = while_doing("beginning", [&] {
      runtime_->begin(iteration);
      return clock_.agree_on_start();
    });
    while_doing("in", [&] { synchronise(start); });
    while_doing("ending", [&] { tell(start, measured); });
    if (!verifier_) return;
    const runtime::Ordinarily ordinarily;
    while_doing("verifying", [&] {
      verifier_->verify(iteration, gradients_.units());
      verifier_->verify_factors(iteration, runtime_->factors());
    });
  }

  void report_timelines() {
    if (options_.timeline && !result_.iteration_s.empty()) {
      result_.timeline =
          gather_timeline(endpoint_, program_, sample_.nearest_to_median(result_.iteration_s));
    }
    for (const RecordedRun& run : every_run_) {
      result_.timelines.push_back(gather_timeline(endpoint_, program_, run));
    }
  }

  void fill(std::uint64_t iteration) {
    const runtime::Ordinarily ordinarily;
    for (std::uint32_t u = 0; u < gradients_.units().size(); ++u) {
      fill_unit(inputs(), iteration, program_.node(), program_.layout().units[u], model_, 0,
                gradients_.units()[u]);
    }
  }

  void synchronise(Clock::time_point start) {
    runtime_->wait_until(start);
    before_ = spent();
    runtime_->start(start);
    if (program_.is_stepped()) {
      compute_steps(start);
    } else {
      produce_gradients(start);
    }
    runtime_->wait();
  }

  /// Exchanges the ranks' reports on the iteration, and records them if it is `measured`.
  void tell(Clock::time_point start, bool measured) {
    const std::vector<Outcome> outcomes = job::gather(endpoint_, outcome(start));
    const Spent after = spent();
    const Spent mine{after.cpu_s - before_.cpu_s, after.metered - before_.metered};
    // A second exchange, so that no rank begins to verify while another still reads its CPU time.
    const std::vector<Spent> all = job::gather(endpoint_, mine);
    if (measured) record(start, outcomes, all);
  }

  /// Runs the computation of all steps by a timer. A task begins when the preceding task and all
  /// its predecessors have ended.
  void compute_steps(Clock::time_point start) {
    Clock::time_point reached = start;
    for (const std::uint32_t index : program_.computation()) {
      const Clock::time_point begin = std::max(reached, runtime_->await_computation(index));
      const casync::Picoseconds length(program_.tasks()[index].task.amount);
      reached = begin + std::chrono::duration_cast<nanoseconds>(length);
      if (options_.backward == Backward::kSpin) {
        while (Clock::now() < reached) {
        }
      }
      runtime_->wait_until(reached);
      runtime_->computed(index, {begin, std::max(reached, Clock::now())});
    }
  }

  /// Runs backward: hands over every gradient at its ready time. Gradients that become ready at the
  /// same instant are handed over together.
  void produce_gradients(Clock::time_point start) {
    const std::span<const runtime::ReadyTime> schedule = program_.schedule();
    for (std::size_t next = 0; next < schedule.size();) {
      const Clock::time_point due = start + schedule[next].after_start;
      if (options_.backward == Backward::kSpin) {
        while (Clock::now() < due) {
        }
      }
      runtime_->wait_until(due);
      const Clock::time_point now = Clock::now();
      for (; next < schedule.size() && start + schedule[next].after_start <= now; ++next) {
        runtime_->gradient_ready(schedule[next].gradient, now);
      }
    }
  }

  Outcome outcome(Clock::time_point start) const {
    Clock::time_point last = start;
    for (const runtime::Interval& interval : runtime_->intervals())
      last = std::max(last, interval.end);
    return {last - start, runtime_->bytes_sent()};
  }

  void record(Clock::time_point start, const std::vector<Outcome>& outcomes,
              const std::vector<Spent>& spent) {
    nanoseconds last_end{};
    result_.bytes_sent.clear();
    for (const Outcome& outcome : outcomes) {
      last_end = std::max(last_end, outcome.last_end);
      result_.bytes_sent.push_back(outcome.bytes_sent);
    }
    result_.iteration_s.push_back(seconds(last_end));
    result_.process_cpu_s.push_back(spent.front().cpu_s);
    double metered = 0;
    for (const Spent& one : spent) metered += one.metered;
    result_.metered.push_back(metered);
    if (options_.timeline) sample_.add(record_run(runtime_->intervals(), start));
    if (options_.every_timeline) {
      every_run_.push_back(record_run(runtime_->intervals(), start));
    }
  }

  transport::Endpoint& endpoint_;
  const models::Model& model_;
  ReplayOptions options_;
  runtime::Program program_;
  Gradients gradients_;
  kernels::StateStore states_;
  std::unique_ptr<runtime::Device> device_;  ///< null on CPUs
  std::unique_ptr<runtime::RankRuntime> runtime_;
  job::CommonClock clock_;
  std::unique_ptr<Verifier> verifier_;
  Spent before_;      ///< usage at the start of the iteration
  RunSample sample_;  ///< records of measured iterations, if a timeline is requested
  std::vector<RecordedRun> every_run_;
  ReplayResult result_;
};

void check_arguments(std::uint32_t ranks, const models::Model& model,
                     const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                     const ReplayOptions& options) {
  if (ranks != graph.nodes) {
    throw std::invalid_argument(
        fmt::format("the graph has {} nodes, the job {} ranks", graph.nodes, ranks));
  }
  if (plan.plan.decisions.size() != model.gradients.size()) {
    throw std::invalid_argument(fmt::format("the plan decides {} gradients, the model has {}",
                                            plan.plan.decisions.size(), model.gradients.size()));
  }
  if (!options.means.empty() && plan.plan.schedule.row().sharded) {
    throw std::invalid_argument("schedule " + plan.plan.schedule.text() +
                                " leaves each rank a shard of the means, which are not written; "
                                "leave `means` out");
  }
  if (options.iterations < 0 || options.warmup < 0 || !(options.timeout_s > 0)) {
    throw std::invalid_argument(
        "iterations and warm-ups must not be negative, and the timeout must be positive");
  }
}

}  // namespace

ReplayResult replay(transport::Endpoint& endpoint, const models::Model& model,
                    const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                    const ReplayOptions& options) {
  // Declared outside `try`, to be destroyed after the handlers have reported the error. In an
  // iteration, an exchange's destructor reports that this rank gave up; the first report wins.
  std::unique_ptr<Replay> running;
  try {
    check_arguments(static_cast<std::uint32_t>(endpoint.size()), model, plan, graph, options);
    return job::as_rank(endpoint.rank(), [&] {
      running = doing(endpoint.rank(), "preparing", 0, [&] {
        return std::make_unique<Replay>(endpoint, model, plan, graph, agree(endpoint, options));
      });
      return running->run();
    });
  } catch (const VerificationError&) {
    throw;  // every rank throws the same error
  } catch (const transport::PeerError& error) {
    endpoint.abort(error.culprit, error.what());
    throw;
  } catch (const job::Exhausted& error) {
    endpoint.abort(endpoint.rank(), error.what());
    throw;
  } catch (const std::exception& error) {
    // If this rank alone fails, the others must not wait for it. If all fail, abort() does no harm.
    endpoint.abort(endpoint.rank(), fmt::format("rank {}: {}", endpoint.rank(), error.what()));
    throw;
  }
}

ReplayResult replay_threads(const std::string& transport, const models::Model& model,
                            const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                            const ReplayOptions& options) {
  check_arguments(graph.nodes, model, plan, graph, options);
  std::vector<std::uint32_t> nodes(graph.nodes);
  std::iota(nodes.begin(), nodes.end(), 0u);
  require_room(room_of(graph, model, plan, nodes, options.verify), nodes.size(),
               io::available_memory());
  std::vector<ReplayResult> results(graph.nodes);
  const auto rank = [&](transport::Endpoint& endpoint) {
    results[static_cast<std::size_t>(endpoint.rank())] =
        replay(endpoint, model, plan, graph, options);
  };
  job::run_thread_ranks(transport, static_cast<int>(graph.nodes), options.timeout_s, rank,
                        runtime::collectives_of(graph));
  return std::move(results.at(0));
}

}  // namespace hipress::replay
