#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "replay/gradient_files.hpp"
#include "runtime/device.hpp"
#include "traces/timeline.hpp"
#include "transport/endpoint.hpp"
#include "transport/nccl_library.hpp"

/// Runs a plan's graph in real time, verifies the results and measures iterations. Example:
///
///   const plans::ResolvedPlan plan = plans::resolve_plan("onebit", {.model = model, .nodes = 4});
///   const casync::TaskGraph graph = casync::expand_to_run(model, plan.plan);
///   const replay::ReplayResult result = replay::replay_threads(
///       "tcp", model, plan, graph, {.iterations = 10});
///   const replay::Report report = replay::make_report(model, plan.plan.schedule, graph, result);
///   std::printf("%.3f ms\n", 1e3 * report.measured_iteration_s.median);
///
/// A distributed job calls replay() on each rank instead, with the rank's endpoint.
namespace hipress::replay {

/// Emulation of backward computation during a replay.
enum class Backward : std::uint8_t {
  kIdle,  ///< a timer: cores stay idle, as if a GPU were computing
  kSpin,  ///< a busy thread until the ready time
};

struct ReplayOptions {
  int warmup = 1;      ///< iterations that are run and verified, but not reported
  int iterations = 3;  ///< measured iterations
  Backward backward = Backward::kIdle;
  bool verify = true;      ///< off only for the profiler's calibration graphs
  double timeout_s = 30;   ///< the job ends after this time without progress
  std::uint64_t seed = 1;  ///< seed of generated gradients and of all random draws
  /// Gradients to synchronise, the same in every iteration. Null: generated ones, new in every
  /// iteration.
  const GradientFiles* gradients = nullptr;
  std::string means = {};  ///< folder for final values (write_means()); empty: not written
  // Folders of the ranks' encoder states (state_file()); empty: not loaded or saved. CPUs only.
  std::string load_state = {};  ///< states at the start
  std::string save_state = {};  ///< states at the end
  /// Called on each rank as an iteration begins. An exception from it ends the job.
  std::function<void(int rank, int iteration)> progress;
  /// Makes the device that a rank runs on; empty: its CPU.
  std::function<std::unique_ptr<runtime::Device>(int rank)> device = {};
  /// Library that moves messages between devices. Null: the endpoint's transport, through the host.
  transport::NcclLibrary* nccl = nullptr;
  /// A counter, read on each rank at the start of an iteration and when it has ended on all ranks.
  std::function<double()> meter = {};
  // If one rank requests timelines, all record them.
  /// Keep the timeline of the median iteration, with the tasks of all ranks, on rank 0. If there
  /// are too many iterations to record, it is the one nearest to the median in a sample.
  bool timeline = false;
  bool every_timeline = false;  ///< keep the timelines of all measured iterations
};

/// Result of a replay. Timelines are on rank 0 only; everything else is the same on all ranks.
struct ReplayResult {
  std::vector<double>
      iteration_s;  ///< measured, from start of backward to the last task on any rank
  std::vector<double>
      process_cpu_s;            ///< per measured iteration: user + system time of rank 0's process
  std::vector<double> metered;  ///< per measured iteration: increase of the meters, over all ranks
  bool verified = false;  ///< true if every gradient of every iteration was verified on every rank
  std::vector<std::int64_t> bytes_sent;     ///< per rank and iteration
  traces::Timeline timeline;                ///< ReplayOptions::timeline
  std::vector<traces::Timeline> timelines;  ///< ReplayOptions::every_timeline
};

/// Replays the graph as rank `endpoint.rank()`. All ranks pass the same arguments, except
/// `progress` and timelines. Throws transport::PeerError if a rank is lost, VerificationError
/// naming the gradient if a value is wrong, and job::Exhausted naming the rank if memory or threads
/// run out.
ReplayResult replay(transport::Endpoint& endpoint, const models::Model& model,
                    const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                    const ReplayOptions& options);

/// Runs all ranks as threads of this process over the named transport ("tcp": loopback TCP,
/// "memory"). Throws io::InputError if the estimated memory is not available, and job::Exhausted if
/// memory or threads run out later.
ReplayResult replay_threads(const std::string& transport, const models::Model& model,
                            const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                            const ReplayOptions& options);

}  // namespace hipress::replay
