#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "casync/task_graph.hpp"
#include "runtime/device_work.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/rounds.hpp"
#include "transport/endpoint.hpp"
#include "transport/nccl.hpp"

namespace hipress::runtime {

/// What a mover tells the runtime of its tasks. Any thread may call these; none is called with a
/// lock of the mover's.
class MoverEvents {
 public:
  virtual ~MoverEvents() = default;

  virtual void issued(std::uint32_t index) = 0;  ///< what is left of it, the device does
  virtual void sent(std::uint32_t index, const Interval& when) = 0;  ///< by the host
  /// The host has done its part: issue() must be called for the rest.
  virtual void returned(std::uint32_t index, Clock::time_point at) = 0;
  virtual void arrived(std::uint32_t index, std::int64_t bytes, Clock::time_point at) = 0;
  virtual void count(std::int64_t bytes) = 0;  ///< that this rank sent
  virtual void happened() = 0;                 ///< something that nobody waits for
  /// Calls `work` unless the job has failed; an error names the task and ends the job.
  virtual void attempt(std::uint32_t index, const std::function<void()>& work) = 0;
  virtual void failed(const transport::PeerError& error) = 0;
};

/// Moves what Sends, Recvs and AllReduces say between one rank's device and other ranks. All but
/// interrupt() and waiting() are for one thread.
class Mover {
 public:
  virtual ~Mover() = default;

  /// Prepares messages and starts threads; the device's memory is there.
  virtual void start() = 0;
  /// Before an iteration.
  virtual void begin(std::uint64_t iteration) = 0;
  /// Enqueues what can be of a task that waits for no other.
  virtual void issue(std::uint32_t index) = 0;
  /// All tasks are done: messages have left.
  virtual void finish() {}

  /// Its own order sees to it that a message is awaited where it is sent.
  virtual bool orders_receives() const { return false; }
  /// Looks whether what it enqueued has failed; throws PeerError. Nothing else would say so.
  virtual void look() {}
  /// That look() must be called often.
  virtual bool needs_looks() const { return false; }
  /// Nothing has happened for so long. False: wait a little more before asking who is at fault;
  /// throws PeerError where it knows, and all ranks know then.
  virtual bool may_be_blamed(std::chrono::nanoseconds /*quiet*/) { return true; }
  /// The task that waits for other ranks, of an error that does not say; kNoIndex.
  virtual std::uint32_t waiting() const = 0;

  /// Which ends of a task's interval the host has measured.
  struct Measured {
    bool start = false, end = false;
  };
  virtual Measured by_host(casync::Kind /*kind*/) const { return {}; }

  /// Its threads shall end, whatever they wait for.
  virtual void interrupt() = 0;
  /// Waits until they have, and gives up what the device still waits for if the iteration is not
  /// over. Its device may still call it until drained.
  virtual void end(bool under_way) = 0;
};

/// Through pinned host memory and the endpoint, on two threads of its own. Both must outlive it, as
/// must `events`.
std::unique_ptr<Mover> make_pinned_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                         MoverEvents& events);

struct NcclOptions {
  transport::NcclLibrary* library = nullptr;
  RoundLimits rounds = {};  ///< of NCCL's groups; the same on every rank
  double timeout_s = 30;
};

/// From device to device over NCCL, as groups in an order that every rank derives from the graph.
/// All ranks must make it together, before the device's memory is allocated: what NCCL takes of it
/// does not count as free.
std::unique_ptr<Mover> make_nccl_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                       MoverEvents& events, const NcclOptions& options);

}  // namespace hipress::runtime
