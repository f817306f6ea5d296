#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
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

namespace hipress::runtime {

/// A gradient that every rank submits once per iteration, under its place in the list.
struct Gradient {
  std::string name;
  std::int64_t elements = 0;
  models::Dtype type = models::Dtype::kFloat32;
  std::vector<std::int64_t> shape = {};  ///< as models::Gradient::shape
  double ready_s = 0;  ///< after the start of backward; bulk groups with a longest wait go by it
  /// Gradients of different fragments are submitted at different times, as in local updates, where
  /// each part of a model has a step of its own. So no bulk group has gradients of two fragments.
  /// None: averaged in every step.
  std::optional<std::uint32_t> fragment = {};
};

/// Gradients and a plan for them, ready to run on any rank.
struct Compiled {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
  /// The same on all ranks whose gradients and plans are the same: a part of JobOptions::plan.
  std::string fingerprint;
};

/// The gradients as a model. Bulk groups and all-reduces take them in this order, which should be
/// that in which backward completes them. Throws io::InputError that names the gradient for no
/// name, a name twice, a number of elements outside 1 … models::kMaxElements, or a shape of another
/// number of elements.
models::Model model_of(std::vector<Gradient> gradients);

/// Compiles a plan that decides the gradients in their order. If the plan batches launches or
/// switches pipelining off, that is ignored: units come in no known order. Neither changes a value.
/// Throws std::invalid_argument as casync::expand_to_run(), and io::InputError for a topology that
/// does not average.
std::shared_ptr<const Compiled> compile(std::vector<Gradient> gradients, plans::ResolvedPlan plan);

/// A plan file, or a named plan, as plans::resolve_plan() takes them.
struct PlanChoice {
  std::string plan = "none";
  std::string topology = "ring";
  std::uint32_t nodes = 1;
  std::string algorithm = "onebit";
  plans::Trust trust = {};
  /// For a named plan: gradients that are smaller than this, and go raw or in half precision, are
  /// put into bulk groups of at most so many bytes, in the order of the list. 0: none are. For
  /// callers who submit many at a time: a group waits for its last member.
  std::int64_t group_bytes = 0;
};
/// The same of such a plan. Throws as plans::resolve_plan(), too.
std::shared_ptr<const Compiled> compile(std::vector<Gradient> gradients, const PlanChoice& choice);

/// A gradient's values in memory that the caller lends, until the Work is done.
struct Tensor {
  void* data = nullptr;
  std::int64_t elements = 0;
  models::Dtype type = models::Dtype::kFloat32;
  bool on_device = false;  ///< the memory is the engine's GPU's, or else the host's
  void* event = nullptr;   ///< on a GPU: the cudaEvent_t after which the values are there, which
                           ///< must have been recorded; null: they are there
};

/// What has been submitted. Copies are of the same; it may outlive the engine.
class Work {
 public:
  Work() = default;
  /// Returns when the tensor holds the mean over all ranks. Throws what the engine has failed with:
  /// transport::PeerError names the rank that is at fault.
  void wait() const;
  /// Without waiting: whether wait() would return, or throw, at once.
  bool done() const;
  /// Waits at most so long; whether it is done. Throws nothing of what the engine has failed with.
  bool wait_until(transport::Clock::time_point at) const;
  /// Calls `callback` once, with null or the error, when the work is done: on a thread of the
  /// engine, or at once on this one. The callback must not throw, nor wait for other works, nor
  /// close the engine. It may submit.
  void then(std::function<void(std::exception_ptr error)> callback) const;

 private:
  friend class Engine;
  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

struct EngineOptions {
  std::uint64_t seed = 1;  ///< of the codecs' random draws; the same on every rank
  /// The job ends if what is under way makes no progress for so long, or a little more: a rank that
  /// submits a gradient later than that after the others is taken for lost.
  double timeout_s = 30;
  /// The GPU on which tensors may lie. It must outlive the engine, and may not be another
  /// runtime's. Its tensors are copied through pinned memory: codecs run on the host's CPUs. Null:
  /// all tensors lie in the host's memory.
  Device* device = nullptr;
};

/// Synchronises gradients between ranks as they become ready: the interface for other programs. It
/// has no environment, no signal handlers, and no global state but the list of a process's sockets,
/// which forked children do not get (transport/socket.hpp). It owns its threads and memory and
/// nothing else; a process may have several engines.
///
/// A *unit* is a gradient or a bulk group (casync/layout.hpp). It runs as soon as its gradients are
/// submitted on this rank, whatever other units do; ranks may submit in different orders. A
/// gradient may be submitted again when its last Work is done on this rank: others may still be an
/// iteration behind. A library's all-reduces are the exception: they run in the order of the
/// gradients, iteration after iteration, so every such gradient has to be submitted equally often.
///
/// Values are copied into working memory in fp32 and back, rounded once. So a tensor may change as
/// soon as submit() has returned (on a GPU: as soon as its Work is done). It is written just before
/// its Work is done.
class Engine {
 public:
  /// All ranks make it together, of equal gradients, plans and options. The endpoint must outlive
  /// it. std::invalid_argument if it has another number of ranks than the plan.
  Engine(transport::Endpoint& endpoint, std::shared_ptr<const Compiled> compiled,
         const EngineOptions& options = {});
  /// close().
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Submits a gradient; any thread may. std::invalid_argument that names it if the tensor has
  /// other elements or another type, or is on a GPU that the engine lacks; std::logic_error if its
  /// last Work is not done, or after close(). Throws as Work::wait() if the engine has failed.
  Work submit(std::uint32_t gradient, const Tensor& tensor);

  /// Waits for what is under way, and ends the engine's threads. Units that have not begun, such as
  /// a bulk group of which some members are missing, fail. Calls after the first do nothing. Not to
  /// be called while another thread submits.
  void close() noexcept;

  /// Ends the job on every rank, which are told that this one ended it and why; works that are
  /// under way fail with that. Any thread may call it, also while others wait or submit.
  void abort(const std::string& reason) noexcept;

  /// Whether the means that tensors were given last, of all gradients, are finite numbers. It is
  /// the same on every rank.
  bool all_finite() const;
  /// Takes back the last iteration of these gradients, whose means were not applied to anything.
  /// What encoders keep for them becomes what it was before, so that nothing is lost of what they
  /// had saved up for later. Every rank does the same, before it submits these gradients again.
  /// Does nothing for a gradient that has no iteration to take back. std::logic_error if one of
  /// them is under way; std::invalid_argument for one that there is not. Throws as Work::wait() if
  /// the engine has failed.
  void discard(std::span<const std::uint32_t> gradients);

  /// Per gradient, the sum of the squares of what this rank's encoders have left out so far and
  /// will send later; negative for a gradient that keeps none of its own, as in a bulk group. Waits
  /// and throws as save_state().
  std::vector<double> squared_residuals();

  /// Writes what encoders keep between iterations, and how many iterations each unit has had, to a
  /// file that appears at once and complete. Waits for what is under way. std::logic_error if only
  /// some members of a bulk group are submitted. Throws as Work::wait() if the engine has failed,
  /// and as kernels::StateStore::save(). Not to be called while another thread submits.
  void save_state(const std::string& path);
  /// Continues where the engine was that wrote the file: means that are made after this have the
  /// bits that they would have had there. The engine must have equal gradients, plan, ranks and
  /// seed. Waits and throws as save_state(). Throws as kernels::StateStore::restore(), and then
  /// changes nothing.
  void load_state(const std::string& path);

  const Compiled& compiled() const { return *compiled_; }
  /// What whoever trains with the plan must know, a line each; empty: nothing. Algorithms that do
  /// not average, such as one with momentum, are named here.
  std::string notes() const;

 private:
  /// A gradient on this rank.
  struct Slot {
    std::uint32_t unit = 0;
    std::span<float> memory;            ///< its part of the unit's
    Tensor tensor;                      ///< what was submitted last
    std::byte* staging = nullptr;       ///< with a GPU: as many values in pinned memory
    std::shared_ptr<Work::State> work;  ///< under way; null: none is
    bool finite = true;                 ///< what it was given last
    bool revocable = false;             ///< its last iteration can be discarded
  };
  struct UnitState {
    std::uint32_t submitted = 0;  ///< members of this iteration
    std::uint32_t copied = 0;     ///< members whose values are in the unit's memory
    std::uint32_t discarded = 0;  ///< members of the last iteration
    std::uint64_t iteration = 0;  ///< the next to begin
    std::uint64_t step = 0;       ///< the codecs' next: iterations that were not discarded
    std::span<float> padding;     ///< of a bulk group: zeros behind its members
  };

  void check(std::uint32_t gradient, const Tensor& tensor) const;
  void lay_out();
  /// Returns when nothing is under way.
  void require_idle();
  /// A gradient's count of iterations, as the store keeps it.
  float* count_of(std::uint32_t gradient);
  /// Takes units that have ended until the engine is closed, or fails.
  void take_ended();
  void end_unit(std::uint32_t unit);
  /// The gradient's values are in its unit's memory.
  void copied(std::uint32_t gradient);
  void copy_from_device(std::uint32_t gradient);
  void copy_to_tensors(std::span<const std::uint32_t> gradients);
  void fail(const std::exception_ptr& error);

  transport::Endpoint& endpoint_;
  const std::shared_ptr<const Compiled> compiled_;
  const Program program_;
  kernels::StateStore states_;
  std::vector<float> memory_;  ///< of all units
  std::vector<std::span<float>> unit_memory_;
  Device* const device_;
  std::mutex device_mutex_;  ///< while something is enqueued there
  std::unique_ptr<UnitRuntime> runtime_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;  ///< nothing is under way, or the engine has failed
  std::vector<Slot> slots_;       ///< per gradient
  std::vector<UnitState> units_;
  std::size_t under_way_ = 0;  ///< units
  std::exception_ptr failure_;
  bool closed_ = false;
  std::thread finisher_;
};

}  // namespace hipress::runtime
