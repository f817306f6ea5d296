#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/imported.hpp"
#include "traces/intervals.hpp"
#include "traces/json_trace.hpp"

namespace hipress::traces {

/// Makes the steps of a job out of the events of PyTorch's profiler, which come in any order.
///
/// An operator launches an activity of the GPU where a call of the runtime lies within it, on its
/// thread, and has the activity's correlation. A job that trains with a plan has no collectives:
/// its hook submits buckets, and waits for all of a step, in ranges named hipress::submit(...) and
/// hipress::wait(...).
class ProfilerTrace {
 public:
  void add(const ProfilerEvent& event);
  /// To be called once, after the last event. None if no event was PyTorch's.
  std::optional<Imported> finish(const TraceHeader& header);

 private:
  struct Collective {
    std::string name, dtype;  ///< as the trace writes them
    std::int64_t elements = 0;
    std::int64_t external_id = -1;
    std::optional<std::int64_t> group_size = {};
  };
  /// A kernel, a copy or a fill.
  struct Activity {
    Interval time;
    std::int64_t correlation = -1;
    bool computes = false;
    int collective = -1;          ///< index into collectives_; -1: it does not communicate
    std::int64_t launch_ns = -1;  ///< -1: not known
    std::uint64_t thread = 0;     ///< of the launch
  };
  struct Call {  ///< of the runtime
    std::int64_t correlation, start_ns;
    std::uint64_t thread;
  };
  struct Operator {
    Interval time;
    std::uint64_t thread = 0;
    std::vector<std::int64_t> shape = {};  ///< none: not told
    std::string dtype = {};
  };
  /// record_param_comms: the CPU's side of a collective.
  struct CollectiveCall {
    Operator call;
    Collective what;
  };
  using Operators = std::vector<Operator>;

  static Collective collective_in(const ProfilerEvent& event);
  static Collective bucket_in(std::string_view range);
  void add_activity(const ProfilerEvent& event);
  void add_operator(const ProfilerEvent& event);
  void join();
  void find_launches();
  void find_times();
  std::vector<Interval> times_of_hooks() const;
  std::int64_t hooks_before(std::int64_t ns, std::int64_t since_ns) const;
  std::vector<std::pair<std::string, Interval>> windows(Imported& imported) const;
  void add_times(const Interval& window, TracedStep& step) const;
  void add_gradients(const Interval& window, TracedStep& step, Imported& imported) const;
  std::optional<std::int64_t> backward_start(const Interval& window, std::uint64_t thread) const;
  const Operator* inside(const Operator& outer) const;
  std::vector<const Collective*> collectives_of(const Operator& accumulate) const;
  void add_world_size(const TraceHeader& header, Imported& imported) const;
  bool has_gpu() const { return !activities_.empty(); }

  std::int64_t events_ = 0;
  bool is_of_pytorch_ = false;
  std::vector<std::pair<std::string, Interval>> steps_;
  std::vector<Activity> activities_;  // sorted by launch, once joined
  std::vector<Call> calls_;
  // Sorted by start, once joined.
  Operators accumulates_;  // with what hooks do
  Operators innermost_;    // without
  Operators backwards_;    // all functions of backward
  std::vector<CollectiveCall> collective_calls_;
  std::vector<CollectiveCall> submits_;
  Operators waits_;
  std::vector<Collective> collectives_;  // of activities
  std::int64_t optimizer_steps_ = 0;
  Interval extent_{INT64_MAX, INT64_MIN};
  TimeSet computing_, communicating_, active_;
  TimeSet waiting_;  // in hooks, for what they have submitted
  TimeSet hooked_;   // in hooks
};

/// "float32", "float16" or "bfloat16" of the trace's "Float", "c10::Half", "Tensor(float)" …; as
/// it is, for other types.
std::string dtype_of(const std::string& text);

}  // namespace hipress::traces
