#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "casync/task_graph.hpp"
#include "kernels/codec/state_store.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "runtime/device.hpp"
#include "runtime/program.hpp"
#include "runtime/unit_runtime.hpp"
#include "transport/endpoint.hpp"

// Example: rank `rank` of 2 averages one gradient, compressed by the plan "tbq".
//
//   const auto compiled = runtime::compile({{.name = "fc.weight", .elements = 4096}},
//                                          runtime::PlanChoice{.plan = "tbq", .nodes = 2});
//   const auto endpoint = transport::find_transport("tcp").connect(
//       {.rank = rank, .size = 2, .job = "example", .plan = compiled->fingerprint,
//        .rendezvous = "file:///shared/folder"});
//   runtime::Engine engine(*endpoint, compiled);
//   std::vector<float> values(4096);  // this rank's gradient
//   const runtime::Work work = engine.submit(0, {.data = values.data(), .elements = 4096});
//   work.wait();  // values now hold the mean

namespace hipress::runtime {

/// A gradient that every rank submits once per iteration; its index in the list identifies it.
struct Gradient {
  std::string name;
  std::int64_t elements = 0;
  models::Dtype type = models::Dtype::kFloat32;
  std::vector<std::int64_t> shape = {};  ///< see models::Gradient::shape
  /// Time after the start of backward; used by bulk groups with a maximum wait.
  double ready_s = 0;
  /// Fragment of the model that the gradient belongs to. In local updates each fragment has steps
  /// of its own, and its gradients are submitted together. No bulk group has gradients of two
  /// fragments. Unset: averaged in every step.
  std::optional<std::uint32_t> fragment = {};
};

/// Gradients with a plan, compiled to a task graph for any rank.
struct Compiled {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
  /// Fingerprint of gradients and plan, which is part of JobOptions::plan. Ranks with equal
  /// gradients and plans have equal fingerprints.
  std::string fingerprint;
};

/// Makes a model of the gradients. Bulk groups and all-reduces follow their order, which should be
/// the order in which backward completes them. Throws io::InputError naming the gradient if its
/// name is empty or not unique, its number of elements is outside 1 … models::kMaxElements, or its
/// shape has a different number of elements.
models::Model model_of(std::vector<Gradient> gradients);

/// Compiles a plan whose decisions are in the order of the gradients. Ignores the plan's batching
/// of launches, and compiles for pipelined execution, because units become ready in no known order.
/// Neither changes a value. Throws std::invalid_argument as casync::expand_to_run() does, and
/// io::InputError for a topology that does not average.
std::shared_ptr<const Compiled> compile(std::vector<Gradient> gradients, plans::ResolvedPlan plan);

/// A plan file or a named plan, as in plans::resolve_plan().
struct PlanChoice {
  std::string plan = "none";
  std::string topology = "ring";
  std::uint32_t nodes = 1;
  std::string algorithm = "onebit";
  plans::Trust trust = {};
  /// Size of a fusion buffer, for a named plan. Smaller gradients that are raw or in half precision
  /// go into bulk groups of at most this many bytes, in the order of the list. 0: no groups. Meant
  /// for callers who submit many gradients at a time, as a group waits for its last member.
  std::int64_t group_bytes = 0;
};
/// Resolves the plan, then compiles it. Also throws as plans::resolve_plan() does.
std::shared_ptr<const Compiled> compile(std::vector<Gradient> gradients, const PlanChoice& choice);

/// Values of a gradient. The caller keeps the memory valid until the Work is done.
struct Tensor {
  void* data = nullptr;
  std::int64_t elements = 0;
  models::Dtype type = models::Dtype::kFloat32;
  bool on_device = false;  ///< true: on the engine's GPU; false: on the host
  /// Recorded cudaEvent_t after which values on a GPU are valid; null: they are valid now.
  void* event = nullptr;
};

/// Handle of a submitted gradient. Copies share its state. May outlive the engine.
class Work {
 public:
  Work() = default;
  /// Waits until the tensor holds the mean over all ranks. Throws the engine's failure, for a lost
  /// rank as transport::PeerError naming the culprit.
  void wait() const;
  /// True if wait() would return or throw at once. Does not wait.
  bool done() const;
  /// Waits until `at` at the latest. Returns true if the work is done. Does not throw the engine's
  /// failure.
  bool wait_until(transport::Clock::time_point at) const;
  /// Calls `callback` once, with null or the error, when the work is done: on a thread of the
  /// engine, or at once on this one. The callback must not throw, wait for other works, or close
  /// the engine. It may submit.
  void then(std::function<void(std::exception_ptr error)> callback) const;

 private:
  friend class Engine;
  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

struct EngineOptions {
  std::uint64_t seed = 1;  ///< seed of the codecs' random draws; the same on every rank
  /// Time without progress, plus a small margin, after which the job ends. A rank that submits a
  /// gradient this much later than the others counts as lost.
  double timeout_s = 30;
  /// GPU on which tensors may lie. Must outlive the engine, and must not be used by another
  /// runtime. Its tensors are copied through pinned memory, because codecs run on the host's CPUs.
  /// Null: all tensors are in host memory.
  Device* device = nullptr;
};

/// Averages gradients between ranks as they become ready: the interface for other programs. It
/// reads no environment variables and installs no signal handlers. Its only global state is the
/// list of the process's sockets, which forked children do not inherit (transport/socket.hpp). A
/// process may have several engines.
///
/// A *unit* is a gradient or a bulk group (casync/layout.hpp). It runs as soon as its gradients are
/// submitted on this rank, independently of other units; ranks may submit in different orders. A
/// gradient may be submitted again when its last Work is done on this rank, even if other ranks are
/// still an iteration behind. All-reduces by a library are less free: they run in the order of the
/// gradients, iteration after iteration, so all their gradients must be submitted equally often.
///
/// Values are copied into fp32 working memory and back, rounded once. The caller may therefore
/// change a tensor as soon as submit() has returned (on a GPU: as soon as its Work is done). The
/// engine writes the tensor just before its Work is done.
class Engine {
 public:
  /// Collective: all ranks create it together, with equal gradients, plans and options. The
  /// endpoint must outlive it. Throws std::invalid_argument if the plan is for more or fewer ranks.
  Engine(transport::Endpoint& endpoint, std::shared_ptr<const Compiled> compiled,
         const EngineOptions& options = {});
  /// Calls close().
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Submits a gradient; any thread may call it. Throws std::invalid_argument naming the gradient
  /// if the tensor's number of elements or type differs, or if it is on a GPU and the engine has
  /// none. Throws std::logic_error if its last Work is not done, or after close(). Throws as
  /// Work::wait() does if the engine has failed.
  Work submit(std::uint32_t gradient, const Tensor& tensor);

  /// Waits for running units and ends the engine's threads. Units that have not begun, such as a
  /// bulk group with missing members, fail. Later calls do nothing. Do not call it while another
  /// thread submits.
  void close() noexcept;

  /// Aborts the job on every rank, with this rank as culprit and with the reason; pending works
  /// fail with this error. Any thread may call it, also while others wait or submit.
  void abort(const std::string& reason) noexcept;

  /// True if the last means of all gradients are finite. The same on every rank.
  bool all_finite() const;
  /// Undoes the last iteration of these gradients, whose means were not applied. Restores the
  /// encoders' state (residuals), so that nothing is lost. Every rank must do the same, before it
  /// submits these gradients again. Does nothing for a gradient without an iteration to undo.
  /// Throws std::logic_error if one of them is pending; throws std::invalid_argument if one does
  /// not exist. Throws as Work::wait() does if the engine has failed.
  void discard(std::span<const std::uint32_t> gradients);

  /// Squared norm of this rank's residual per gradient: values that its encoders have left out so
  /// far and will send later. Negative for a gradient without a residual of its own, such as a
  /// member of a bulk group. Waits and throws as save_state() does.
  std::vector<double> squared_residuals();

  /// Moves this rank's residual of a gradient into `values`, in the scale of its gradients, and
  /// leaves zeros. If `values` is then added to the rank's next gradient, nothing that its encoders
  /// hold back is lost, even if another engine averages that gradient. The first call for a member
  /// of a bulk group moves the group's residual out of the encoders; each call returns its
  /// gradient's part. Throws std::invalid_argument for an unknown gradient or a different number of
  /// elements. Waits and throws as save_state() does. The last iteration can no longer be undone.
  void take_residual(std::uint32_t gradient, std::span<float> values);

  /// Saves the encoders' state and each unit's number of iterations to a file, atomically. Waits
  /// for running units. Throws std::logic_error if only some members of a bulk group are submitted.
  /// Throws as Work::wait() does if the engine has failed, and as kernels::StateStore::save() does.
  /// Do not call it while another thread submits.
  void save_state(const std::string& path);
  /// Restores a state saved by save_state(): later means are bit-identical to those of the engine
  /// that wrote the file. That engine must have had equal gradients, plan, ranks and seed. Waits
  /// and throws as save_state() does. Also throws as kernels::StateStore::restore() does, and then
  /// changes nothing.
  void load_state(const std::string& path);

  const Compiled& compiled() const { return *compiled_; }
  /// Warnings for training with this plan, one per line; may be empty. Names algorithms that do not
  /// average, such as one with momentum.
  std::string notes() const;

 private:
  /// A gradient on this rank.
  struct Slot {
    std::uint32_t unit = 0;
    std::span<float> memory;            ///< its part of the unit's memory
    Tensor tensor;                      ///< last submitted tensor
    std::byte* staging = nullptr;       ///< pinned memory for its values, with a GPU
    std::shared_ptr<Work::State> work;  ///< pending work, or null
    bool finite = true;                 ///< its last mean was finite
    bool revocable = false;             ///< its last iteration can be undone
  };
  struct UnitState {
    std::uint32_t submitted = 0;  ///< members submitted in this iteration
    std::uint32_t copied = 0;     ///< members whose values are in the unit's memory
    std::uint32_t discarded = 0;  ///< members whose last iteration was discarded
    std::uint64_t iteration = 0;  ///< next iteration to begin
    std::uint64_t step = 0;  ///< next step of the codecs: counts iterations that were not discarded
    std::span<float> padding;  ///< zeros after the members of a bulk group
  };

  void check(std::uint32_t gradient, const Tensor& tensor) const;
  void lay_out();
  /// Waits until no unit is running.
  void require_idle();
  /// Iteration count of a gradient in the state store: as digits, since the store holds floats.
  float* count_of(std::uint32_t gradient);
  /// Completes units as they end, until the engine is closed or fails.
  void take_ended();
  void end_unit(std::uint32_t unit);
  /// Notes that the gradient's values are in its unit's memory, and starts the unit after its last
  /// member.
  void copied(std::uint32_t gradient);
  void copy_from_device(std::uint32_t gradient);
  void copy_to_tensors(std::span<const std::uint32_t> gradients);
  void fail(const std::exception_ptr& error);

  transport::Endpoint& endpoint_;
  const std::shared_ptr<const Compiled> compiled_;
  const Program program_;
  kernels::StateStore states_;
  std::vector<float> memory_;  ///< memory of all units
  std::vector<std::span<float>> unit_memory_;
  Device* const device_;
  std::mutex device_mutex_;  ///< held while enqueuing on the device
  std::unique_ptr<UnitRuntime> runtime_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;  ///< no unit is running, or the engine has failed
  std::vector<Slot> slots_;       ///< per gradient
  std::vector<UnitState> units_;
  std::size_t under_way_ = 0;  ///< running units
  /// Per unit: residuals of members for which take_residual() has not been called yet.
  std::map<std::uint32_t, std::vector<float>> taken_;
  std::exception_ptr failure_;
  bool closed_ = false;
  std::thread finisher_;
};

}  // namespace hipress::runtime
