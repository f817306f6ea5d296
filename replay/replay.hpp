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

namespace hipress::replay {

/// Who produces gradients during a replay.
enum class Backward : std::uint8_t {
  kIdle,  ///< a timer, as if a GPU were computing
  kSpin,  ///< a thread that is busy until the ready time
};

struct ReplayOptions {
  int warmup = 1;      ///< iterations that are run and verified, but not reported
  int iterations = 3;  ///< measured ones
  Backward backward = Backward::kIdle;
  bool verify = true;      ///< off only for the profiler's calibration graphs
  double timeout_s = 30;   ///< without progress for so long, the job ends
  std::uint64_t seed = 1;  ///< of made-up gradients, and of all random draws
  /// What the ranks synchronise, in every iteration alike; null: made-up gradients, new ones in
  /// every iteration.
  const GradientFiles* gradients = nullptr;
  std::string means = {};  ///< folder to write what ranks end with (write_means); empty: none
  // Folders with what the ranks' encoders keep (state_file()); empty: none. On CPUs.
  std::string load_state = {};  ///< that they begin with
  std::string save_state = {};  ///< that they end with
  /// Called on each rank as an iteration begins. What it throws ends the job.
  std::function<void(int rank, int iteration)> progress;
  /// Makes the device that a rank runs on; none: its CPU.
  std::function<std::unique_ptr<runtime::Device>(int rank)> device = {};
  /// What moves messages between devices; null: the endpoint's transport, through the host.
  transport::NcclLibrary* nccl = nullptr;
  /// Each rank's is read as an iteration starts and once it has ended on all ranks.
  std::function<double()> meter = {};
  // Where one rank asks for timelines, all record them.
  /// Keep the timeline of the median iteration, or of one near it where there are so many that only
  /// a sample is recorded; rank 0 gets all ranks'.
  bool timeline = false;
  bool every_timeline = false;  ///< keep the timelines of all measured iterations
};

/// What rank 0 learns of a replay (others: the same numbers, without a timeline).
struct ReplayResult {
  std::vector<double>
      iteration_s;  ///< measured, from start of backward to the last task on any rank
  std::vector<double>
      process_cpu_s;            ///< per measured iteration: user + system time of this process
  std::vector<double> metered;  ///< per measured iteration: how far all ranks' meters went
  bool verified = false;        ///< every iteration, every gradient, on every rank
  std::vector<std::int64_t> bytes_sent;     ///< per rank and iteration
  traces::Timeline timeline;                ///< of the iteration whose time is the median, or near
  std::vector<traces::Timeline> timelines;  ///< of every measured iteration, if asked for
};

/// Replays the graph as rank `endpoint.rank()`. Every rank calls it with the same arguments, but
/// for `progress` and timelines. Throws transport::PeerError when a rank is lost, io::RunError
/// naming the gradient when data does not verify, Exhausted naming the rank that has no more memory
/// or threads.
ReplayResult replay(transport::Endpoint& endpoint, const models::Model& model,
                    const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                    const ReplayOptions& options);

/// Runs all ranks as threads of this process over the named transport ("tcp": loopback TCP,
/// "memory"). io::InputError if there is no room for them, Exhausted if there turns out to be none.
ReplayResult replay_threads(const std::string& transport, const models::Model& model,
                            const plans::ResolvedPlan& plan, const casync::TaskGraph& graph,
                            const ReplayOptions& options);

}  // namespace hipress::replay
