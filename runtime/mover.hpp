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

/// Events of a mover, for the runtime. Any thread may call these; the mover holds no lock of its
/// own meanwhile.
class MoverEvents {
 public:
  virtual ~MoverEvents() = default;

  /// The host has finished its part of the task; the device may not have.
  virtual void issued(std::uint32_t index) = 0;
  /// The host has sent a message, from `when.start` until `when.end`.
  virtual void sent(std::uint32_t index, const Interval& when) = 0;
  /// The host has done its part of the task; issue() must be called again for the rest.
  virtual void returned(std::uint32_t index, Clock::time_point at) = 0;
  /// The message of a Recv has arrived.
  virtual void arrived(std::uint32_t index, std::int64_t bytes, Clock::time_point at) = 0;
  /// This rank has put `bytes` more bytes on its egress.
  virtual void count(std::int64_t bytes) = 0;
  /// Reports progress without a completed task, so that the job does not count as stalled.
  virtual void happened() = 0;
  /// Calls `work` unless the job has failed. Its error names the task and aborts the job.
  virtual void attempt(std::uint32_t index, const std::function<void()>& work) = 0;
  /// A rank is lost, so the job has failed.
  virtual void failed(const transport::PeerError& error) = 0;
};

/// Moves the messages of Sends, Recvs and AllReduces between one rank's device and other ranks.
/// Called by one thread at a time, except interrupt() and waiting(), which any thread may call.
class Mover {
 public:
  virtual ~Mover() = default;

  /// Prepares messages and starts threads. The device's memory must have been allocated.
  virtual void start() = 0;
  virtual void begin(std::uint64_t iteration) = 0;
  /// Enqueues the parts of a task that can be enqueued now; its predecessors have been issued.
  virtual void issue(std::uint32_t index) = 0;
  /// Waits until all messages have left; call it when all tasks are done.
  virtual void finish() {}

  /// True if a Recv need not wait for its Send, since the mover orders both in the same way on all
  /// ranks.
  virtual bool orders_receives() const { return false; }
  /// Polls for failures: throws PeerError if an enqueued operation has failed.
  virtual void look() {}
  /// True if look() must be called often because failures are not reported otherwise.
  virtual bool needs_looks() const { return false; }
  /// True if a culprit may be named after a time `quiet` without progress; false if that is too
  /// early. Throws PeerError if the mover knows the culprit and has told all ranks.
  virtual bool may_be_blamed(std::chrono::nanoseconds /*quiet*/) { return true; }
  /// Task that waits for other ranks, for errors that do not name one; kNoIndex if no task waits.
  virtual std::uint32_t waiting() const = 0;

  /// Ends of a task's interval that the host measures. False: the device measures this end.
  struct Measured {
    bool start = false, end = false;
  };
  virtual Measured by_host(casync::Kind /*kind*/) const { return {}; }

  /// Makes the mover's threads end, whatever they wait for.
  virtual void interrupt() = 0;
  /// Waits until the threads have ended. If an iteration is `under_way`, cancels the operations
  /// that the device waits for. The device may still call the mover until the device is drained.
  virtual void end(bool under_way) = 0;
};

/// Creates a mover that uses pinned host memory and the endpoint, with two threads of its own. All
/// arguments must outlive it.
std::unique_ptr<Mover> make_pinned_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                         MoverEvents& events);

struct NcclOptions {
  transport::NcclLibrary* library = nullptr;
  RoundLimits rounds = {};  ///< limits of NCCL's groups; the same on every rank
  double timeout_s = 30;
};

/// Creates a mover from device to device over NCCL, in groups whose order every rank derives from
/// the graph. Collective: all ranks call it together, before the device's memory is allocated, so
/// that NCCL's memory does not count as free.
std::unique_ptr<Mover> make_nccl_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                       MoverEvents& events, const NcclOptions& options);

}  // namespace hipress::runtime
