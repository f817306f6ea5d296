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

/// What a mover tells the runtime of its tasks. Any thread may call these; the mover holds no lock
/// of its own meanwhile.
class MoverEvents {
 public:
  virtual ~MoverEvents() = default;

  /// The host has nothing left to do for the task; the device may have.
  virtual void issued(std::uint32_t index) = 0;
  /// The host has sent a message, from `when.start` until `when.end`.
  virtual void sent(std::uint32_t index, const Interval& when) = 0;
  /// The host has done its part of the task, and issue() is to be called for the rest.
  virtual void returned(std::uint32_t index, Clock::time_point at) = 0;
  /// The message of a Recv is here.
  virtual void arrived(std::uint32_t index, std::int64_t bytes, Clock::time_point at) = 0;
  /// This rank has put so many bytes more on its egress.
  virtual void count(std::int64_t bytes) = 0;
  /// Something has been done that ends no task: the job does not stand still.
  virtual void happened() = 0;
  /// Calls `work` unless the job has failed. An error of it names the task and ends the job.
  virtual void attempt(std::uint32_t index, const std::function<void()>& work) = 0;
  /// A rank is lost, and the job with it.
  virtual void failed(const transport::PeerError& error) = 0;
};

/// Moves what Sends, Recvs and AllReduces say between one rank's device and other ranks. Calls are
/// for one thread at a time, but for interrupt() and waiting(), which any thread may call.
class Mover {
 public:
  virtual ~Mover() = default;

  /// Prepares messages and starts threads. The device's memory must have been allocated.
  virtual void start() = 0;
  virtual void begin(std::uint64_t iteration) = 0;
  /// Enqueues a task whose predecessors have been issued, as far as that can be done now.
  virtual void issue(std::uint32_t index) = 0;
  /// Returns when all messages have left, once all tasks are done.
  virtual void finish() {}

  /// True: a Recv need not wait for its Send here, since the mover orders both in one way on all
  /// ranks.
  virtual bool orders_receives() const { return false; }
  /// Throws PeerError if something that it enqueued has failed.
  virtual void look() {}
  /// True: look() must be called often, since nothing else notices such failures.
  virtual bool needs_looks() const { return false; }
  /// Nothing has happened for `quiet`. False: it is too early to say who is at fault. Throws
  /// PeerError if the mover knows that, and has told all ranks.
  virtual bool may_be_blamed(std::chrono::nanoseconds /*quiet*/) { return true; }
  /// The task that waits for other ranks, for errors that do not name one; kNoIndex: none does.
  virtual std::uint32_t waiting() const = 0;

  /// Which ends of a task's interval the host has measured; the device measures the others.
  struct Measured {
    bool start = false, end = false;
  };
  virtual Measured by_host(casync::Kind /*kind*/) const { return {}; }

  /// Tells its threads to end, whatever they wait for.
  virtual void interrupt() = 0;
  /// Waits until they have ended. If the iteration is not over, it gives up what the device still
  /// waits for. The device may call it until it is drained.
  virtual void end(bool under_way) = 0;
};

/// Moves messages through pinned host memory and the endpoint, on two threads of its own. All
/// arguments must outlive it.
std::unique_ptr<Mover> make_pinned_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                         MoverEvents& events);

struct NcclOptions {
  transport::NcclLibrary* library = nullptr;
  RoundLimits rounds = {};  ///< of NCCL's groups; the same on every rank
  double timeout_s = 30;
};

/// Moves messages from device to device over NCCL, as groups in an order that every rank derives
/// from the graph. All ranks must make it together, and before the device's memory is allocated, so
/// that what NCCL takes does not count as free.
std::unique_ptr<Mover> make_nccl_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                       MoverEvents& events, const NcclOptions& options);

}  // namespace hipress::runtime
