#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/program.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

using transport::Clock;

/// Execution interval of a task. A Send ends when the transport has accepted it.
struct Interval {
  Clock::time_point start, end;
};

/// A gradient's factor after an iteration: its mean, or the values with which the codec has
/// replaced that. Bit-identical on all ranks.
struct Factor {
  std::uint32_t gradient = 0;
  std::uint32_t stage = 0;
  std::span<const float> values;
};

/// Runs one rank's program, iteration after iteration, on any hardware. An iteration is
///   begin(i) on every rank, then start(t), gradient_ready(g, t) for every gradient, wait().
/// The caller owns the gradients' memory: inputs before begin(), means over nodes after wait().
class RankRuntime {
 public:
  virtual ~RankRuntime() = default;

  /// Posts all receives. Every rank must have returned from begin() before any rank calls start().
  virtual void begin(std::uint64_t iteration) = 0;
  /// Starts the tasks without predecessors; `at` is their ready time.
  virtual void start(Clock::time_point at) = 0;
  /// Reports that this rank has computed a gradient; gradients may come in any order. Throws
  /// std::invalid_argument if the graph has no Backward task for it here.
  virtual void gradient_ready(std::uint32_t gradient, Clock::time_point at) = 0;
  /// Counterpart of gradient_ready() for stepped programs: waits until all predecessors of this
  /// computation are done. Returns the time at which the last one ended, or time_point::min() if
  /// there are none. Throws like wait().
  virtual Clock::time_point await_computation(std::uint32_t index) = 0;
  /// Reports the interval in which that computation ran.
  virtual void computed(std::uint32_t index, const Interval& when) = 0;
  /// Sleeps until `at`. Throws like wait() as soon as the iteration has failed.
  virtual void wait_until(Clock::time_point at) = 0;
  /// Waits until every task of this rank is done and its messages have left. Throws PeerError if a
  /// rank is lost or nothing happens for the job's timeout, and std::runtime_error naming the task
  /// if a task fails. A runtime that has failed can only be destroyed.
  virtual void wait() = 0;

  // Results of the last iteration, after wait().
  virtual std::span<const Interval> intervals() const = 0;  ///< per Program::tasks()
  virtual std::int64_t bytes_sent() const = 0;
  /// Factors of all gradients that are compressed in stages, valid until the next begin().
  virtual std::vector<Factor> factors() const { return {}; }
};

/// Memory of a Send's or Recv's message, by its index into Program::tasks().
using Places = std::function<std::span<std::byte>(std::uint32_t index)>;

/// Prepares the exchange of the messages of these Sends and Recvs, in this order. The id of the
/// Recv identifies a message.
std::unique_ptr<transport::Exchange> prepare_exchange(
    transport::Endpoint& endpoint, const Program& program, std::span<const std::uint32_t> sends,
    std::span<const std::uint32_t> receives, const Places& place, transport::Events events);

/// A rank's evidence about the culprit of a stall.
enum class Blame : std::uint8_t {
  kSelf,    ///< this rank, certainly
  kSender,  ///< a rank whose message depends on no other rank
  kUnsure,  ///< a rank that may itself be waiting
};

/// Time without progress after which a rank reports a culprit: 1 to 1.4 times the timeout. All
/// ranks notice a stall at about the same time, and all believe the first report. Ranks with better
/// evidence therefore report earlier and, if the evidence is equal, lower ranks do.
std::chrono::nanoseconds patience(double timeout_s, Blame blame, int rank);

/// Diagnosis of a stall by one rank.
struct Stall {
  transport::PeerError error;
  std::chrono::nanoseconds patience;  ///< time without progress before the rank reports it
};

/// Diagnoses a timeout. The culprit is this rank if a gradient never became ready, or if it is
/// `busy` with a task (kNoIndex: it is not). Otherwise, if a message is missing, the culprit is its
/// sender: this rank's own unfinished tasks may only be waiting for that message. Otherwise it is
/// this rank, at its first unfinished task.
Stall find_stall(const Program& program, double timeout_s,
                 const std::function<bool(std::uint32_t index)>& undone, std::uint32_t busy);

/// Failure handling of one rank, the same on any hardware. The first failure counts, and all
/// waiting threads are notified. Errors that name no task get the name of the waiting task.
class FallibleRuntime {
 public:
  FallibleRuntime(const FallibleRuntime&) = delete;
  FallibleRuntime& operator=(const FallibleRuntime&) = delete;

 protected:
  /// `endpoint` and `program` must outlive the runtime.
  FallibleRuntime(transport::Endpoint& endpoint, const Program& program, double timeout_s);
  virtual ~FallibleRuntime() = default;

  /// See RankRuntime::wait_until().
  void sleep_until(Clock::time_point at);

  /// Calls `work`. Its errors then name the task, unless they concern the whole rank.
  template <class Work>
  void as_task(std::uint32_t index, const Work& work) const {
    try {
      work();
    } catch (...) {
      rethrow_of_task(index);
    }
  }
  /// Finishes the exchange's iteration.
  void finish(transport::Exchange& exchange) const;
  void fail(std::exception_ptr error);
  /// Copy of the error, with the name of the task that waits for the lost rank added.
  transport::PeerError named(const transport::PeerError& error) const;

  // The caller holds mutex_.
  void rethrow_failure() const;
  /// Aborts the job and names the culprit if `quiet`, the time without progress, exceeds this
  /// rank's patience; releases the lock meanwhile. For the arguments see find_stall().
  void end_if_stalled(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds quiet,
                      const std::function<bool(std::uint32_t index)>& undone, std::uint32_t busy);

  transport::Endpoint& endpoint_;
  const Program& program_;
  const double timeout_s_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< progress for a waiting thread, or the job has failed
  std::exception_ptr failure_;       ///< first failure

 private:
  /// Rethrows the caught exception with the task's name.
  [[noreturn]] void rethrow_of_task(std::uint32_t index) const;
  /// Wakes threads that wait for something other than changed_ after a failure. The caller holds
  /// mutex_.
  virtual void on_failure() {}
  /// Task that waits for other ranks, for errors that do not name one; kNoIndex if no task waits.
  virtual std::uint32_t waiting() const = 0;
};

}  // namespace hipress::runtime
