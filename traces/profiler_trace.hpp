#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/communication.hpp"
#include "traces/imported.hpp"
#include "traces/intervals.hpp"
#include "traces/json_trace.hpp"
#include "traces/kernel_classes.hpp"
#include "traces/ranks.hpp"
#include "traces/updated_tensors.hpp"

namespace hipress::traces {

/// Makes the steps of a job from events of PyTorch's profiler, which may come in any order.
///
/// An operator launches a GPU activity if a runtime call has the activity's correlation and is
/// within the operator, on its thread. An activity belongs to the step that launched it, even if it
/// runs later. A job that trains with a plan has no collectives: its hook submits buckets in ranges
/// named hipress::submit(...), and waits for all buckets of a step in hipress::wait(...).
class ProfilerTrace {
 public:
  /// Adds an event. Throws io::InputError, without the file's name, if it ends before it begins.
  void add(const ProfilerEvent& event);
  /// Joins the events. Call it once, after the last event. Returns nothing if no event was
  /// PyTorch's. Throws io::InputError, without the file's name, for traces of several ranks and
  /// impossible times.
  std::optional<Imported> finish(const TraceHeader& header);

 private:
  struct Collective {
    std::string name, dtype;  ///< as the trace writes them
    std::int64_t elements = 0;
    std::int64_t out_elements = 0;
    std::optional<std::int64_t> group_size = {};
    std::string group = {};  ///< name of its process group

    CollectiveKind kind() const { return collective_named(name); }
    bool has_size() const { return elements > 0 || out_elements > 0; }
    void add(const Collective& more);
  };
  /// GPU activity: a kernel, a copy or a fill.
  struct Activity {
    Interval time;
    std::int64_t correlation = -1;
    bool computes = false;
    int collective = -1;          ///< index into collectives_; -1: no collective
    std::int64_t launch_ns = -1;  ///< -1: unknown
    std::uint64_t thread = 0;     ///< thread of the launch
    std::uint64_t stream = 0;
  };
  /// Window of an iteration, in the CPU's time.
  struct Window {
    std::string name;
    Interval time;
    std::uint64_t thread = 0;
  };
  struct Call {  ///< call of the runtime
    std::int64_t correlation, start_ns;
    std::uint64_t thread;
  };
  struct Operator {
    Interval time;
    std::uint64_t thread = 0;
    std::vector<std::int64_t> shape = {};
    std::string dtype = {};
    bool has_shape = false;

    /// True if the first argument is not a tensor, and so not a gradient.
    bool is_undefined() const { return has_shape && shape.empty() && dtype.empty(); }
  };
  /// Start of an operator. Operators within backward are removed when the events are joined.
  struct Begin {
    std::uint64_t thread = 0;
    std::int64_t ns = 0;
  };
  /// A backward pass: AccumulateGrads of one thread with no forward between them.
  struct Pass {
    std::vector<const Operator*> accumulates;
    std::int64_t since_ns = 0;  ///< end of the previous pass, and of optimizer steps after it
    std::vector<TracedGradient> gradients = {}, of_inputs = {}, buckets = {};
    std::vector<std::size_t> filled_by = {};  ///< number of gradients that precede each bucket
    std::optional<double> forward_s = {};
    std::string travels = {};  ///< see TracedStep::travels
  };
  /// Call of a collective on the CPU (record_param_comms).
  struct CollectiveCall {
    Operator call;
    Collective what;
  };
  /// Range of FSDP in which gathers or reductions start.
  struct LayerRange {
    std::uint64_t thread = 0;
    Interval time;
    bool is_named = false;  ///< `layer` is set; the root's is empty
    std::string layer = {};
  };
  /// Copy of gradients into the buffer of a reduction.
  struct Copy {
    std::int64_t ns = 0;
    std::vector<std::vector<std::int64_t>> shapes;
  };
  /// Use of a sparse tensor, by the operator that makes it or that adds it to a gradient.
  struct SparseUse {
    std::uint64_t thread = 0;
    std::int64_t ns = 0;
    SparseSize size = {};  ///< 0: unknown
  };
  /// A collective with its start on the CPU and, if known, the time of its execution.
  struct Started {
    Collective what;
    std::uint64_t thread;
    std::int64_t ns;
    std::optional<Interval> time;
  };
  /// Communication of a step that carries its gradients.
  struct Carried {
    std::vector<Interval> times;
    std::int64_t ready_ns = INT64_MIN;  ///< ready time of the last gradient, on the CPU
    std::int64_t last_ns = INT64_MIN;   ///< end of that gradient's evaluation
  };
  using Operators = std::vector<Operator>;

  void count_unknown(const std::string& category);
  std::string why_no_gpu() const;
  static Collective collective_in(const ProfilerEvent& event);
  static TracedGradient traced_of(const Collective& what);
  static Collective bucket_in(std::string_view range);
  void add_activity(const ProfilerEvent& event);
  bool add_operator(const ProfilerEvent& event);
  void add_tensor_operator(const ProfilerEvent& event);
  void join();
  void find_launches();
  void describe(std::vector<CollectiveCall> calls);
  void find_updates();
  void take_out_returned();
  void check_steps() const;
  void find_times();
  std::vector<Interval> times_of_hooks() const;
  std::int64_t hooks_before(std::int64_t ns, std::int64_t since_ns) const;
  void find_forward();
  std::vector<Window> windows(Imported& imported) const;
  std::vector<Interval> times_on_gpu(const std::vector<Window>& windows) const;
  const Activity* first_computing(std::int64_t since_ns, std::int64_t until_ns) const;
  bool is_behind(const Window& window) const;
  void add_times(const Interval& window, TracedStep& step) const;
  void add_gradients(const Window& window, TracedStep& step, Imported& imported) const;
  std::vector<const Operator*> gradients_of(const Window& window, TracedStep& step,
                                            Imported& imported) const;
  bool launches(const Operator& accumulate) const;
  std::vector<Pass> passes_of(const Window& window,
                              const std::vector<const Operator*>& accumulates) const;
  bool goes_forward(const Interval& between, std::uint64_t thread) const;
  bool steps_between(const Pass& pass, const Pass& next) const;
  std::int64_t after_optimizers(const Interval& time) const;
  void read_pass(const Window& window, Pass& pass) const;
  void take_out_inputs(Pass& pass) const;
  std::optional<std::int64_t> backward_start(const Interval& window, std::uint64_t thread) const;
  void keep_last_iteration(const std::string& name, std::vector<Pass>& passes, TracedStep& step,
                           Imported& imported) const;
  void say_in_turn(const std::string& name, const std::vector<Pass>& passes,
                   Imported& imported) const;
  Carried add_collectives(const Window& window, TracedStep& step) const;
  void add_late_buckets(const std::vector<Started>& behind, TracedStep& step,
                        Carried& carried) const;
  void add_exposed(const Interval& window, const Carried& carried, TracedStep& step) const;
  const Operator* accumulate_around(std::uint64_t thread, std::int64_t ns) const;
  struct WindowWork;
  std::vector<WindowWork> work_of(const std::vector<Window>& windows) const;
  static std::vector<bool> ends_of_steps(const std::vector<Window>& windows,
                                         const std::vector<WindowWork>& works, Imported& imported);
  std::vector<Window> whole_steps(const std::vector<Window>& windows, Imported& imported) const;
  const Operator* inside(const Operator& outer) const;
  std::optional<SparseSize> sparse_in(const Operator& accumulate) const;
  std::vector<const Collective*> collectives_of(const Operator& accumulate) const;
  void add_world_size(const TraceHeader& header, Imported& imported) const;
  static void take_world_size_of_gradients(Imported& imported);
  bool add_range_of_fsdp(const ProfilerEvent& event);
  std::uint64_t computing_stream() const;
  void join_sharded();
  std::vector<Interval> backward_passes(const Window& window) const;
  int keep_last_iteration(std::vector<Interval>& passes) const;
  void read_types_of_library();
  static void take_medians(std::vector<Pass>& passes);
  static void share_out(TracedStep& step, int iterations);
  const LayerRange* layer_range(std::uint64_t thread, std::int64_t ns) const;
  std::int64_t evaluation_of(std::uint64_t thread, std::int64_t ns) const;
  StepCollective step_collective(const Collective& what, std::uint64_t thread, std::int64_t ns,
                                 const std::vector<Interval>& passes) const;
  std::vector<Started> started(const Window& window) const;
  struct Computed;
  Computed computed_since(std::int64_t ns) const;
  std::optional<double> computed_until(Computed& computed, std::int64_t ns) const;
  std::optional<double> exposed_s(const Interval& time) const;
  std::vector<std::vector<std::int64_t>> gradients_before(std::int64_t since_ns,
                                                          std::int64_t ns) const;
  void add_sharded(const Window& window, TracedStep& step, Imported& imported) const;
  void add_times_of_passes(std::int64_t since_ns, const std::vector<Interval>& passes,
                           ShardedStep& sharded) const;
  void add_reductions(const std::vector<Interval>& passes, ShardedStep& sharded) const;
  std::optional<double> optimizer_s(const Interval& window) const;
  bool has_gpu() const { return !activities_.empty(); }

  std::int64_t events_ = 0;
  bool is_of_pytorch_ = false;
  std::vector<Window> steps_;
  std::vector<Activity> activities_;  // sorted by launch once joined
  KernelTimes kernels_;               // times of computing kernels
  std::vector<Call> calls_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> launches_;  // by thread; sorted once joined
  std::map<std::string, std::int64_t> unknown_;                   // number of events per category
  // Sorted by start once joined:
  Operators accumulates_;        // including hooks
  Operators innermost_;          // evaluations without hooks; by thread
  Operators backwards_;          // all functions of backward
  std::vector<Begin> forward_;   // by thread and time once joined
  std::vector<Begin> products_;  // matrix products; once joined, those in AccumulateGrad
  std::vector<CollectiveCall> collective_calls_;
  std::vector<CollectiveCall> c10d_calls_;  // operators of c10d, used if no other event has sizes
  std::vector<CollectiveCall> submits_;
  Operators waits_;
  std::vector<Collective> collectives_;    // collectives of activities
  std::vector<Interval> optimizer_steps_;  // sorted once joined
  /// An in-place operator and its time.
  struct UpdateAt {
    std::int64_t ns = 0;
    Update what;
  };
  std::vector<UpdateAt> in_place_;  // empty once joined
  UpdatedTensors updated_;
  std::vector<std::int64_t> returned_;  // times of returned gradients, sorted once joined
  bool has_functions_ = false;          // functions of backward lie within evaluations
  std::vector<SparseUse> sparse_;       // by thread and time once joined
  RankEvidence ranks_;
  Interval extent_{INT64_MAX, INT64_MIN};
  TimeSet computing_, communicating_, active_;
  TimeSet waiting_;  // waits in hooks for submitted buckets
  TimeSet hooked_;   // time in hooks
  // For sharded jobs only:
  std::vector<LayerRange> layer_ranges_;   // by thread and time once joined
  std::vector<Interval> fsdp_hooks_;       // empty once joined
  std::vector<CollectiveCall> described_;  // ranges of NCCL and similar libraries, until joined
  std::vector<Copy> copies_;               // sorted once joined
  /// Call on one of gloo's threads.
  struct LibraryCall {
    Interval time;
    CollectiveKind kind = CollectiveKind::kOther;
    std::int64_t elements = 0;
    std::string dtype = {};
  };
  std::vector<LibraryCall> library_calls_;  // sorted once joined
  TimeSet sharding_hooks_, library_times_;
  std::uint64_t stream_ = 0;  // computing stream
};

}  // namespace hipress::traces
