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

/// When a task ran. A Send's end here is when the transport took it over.
struct Interval {
  Clock::time_point start, end;
};

/// What became of a gradient's factor in an iteration: the mean, or what the codec made of it. All
/// ranks have the same bits.
struct Factor {
  std::uint32_t gradient = 0;
  std::uint32_t stage = 0;
  std::span<const float> values;
};

/// Runs one rank's program, iteration after iteration, on whatever hardware. An iteration is
///   begin(i) on every rank, then start(t), gradient_ready(g, t) for every gradient, wait().
/// The gradients' memory is the caller's: inputs before begin, means over nodes after wait().
class RankRuntime {
 public:
  virtual ~RankRuntime() = default;

  /// Posts all receives. Every rank must have returned from here before any rank calls start().
  virtual void begin(std::uint64_t iteration) = 0;
  /// Starts the tasks that wait for nothing; `at` is their ready time.
  virtual void start(Clock::time_point at) = 0;
  /// The gradient is complete on this rank, in any order; std::invalid_argument if the graph has no
  /// Backward task for it here.
  virtual void gradient_ready(std::uint32_t gradient, Clock::time_point at) = 0;
  /// Stepped programs call this where others call gradient_ready(). It returns when all that this
  /// computation waits for is done. The result is the time when that was, or the earliest time if
  /// it waits for nothing. Throws like wait().
  virtual Clock::time_point await_computation(std::uint32_t index) = 0;
  /// It has run from then to then.
  virtual void computed(std::uint32_t index, const Interval& when) = 0;
  /// Sleeps until then, or throws like wait() as soon as the iteration has failed.
  virtual void wait_until(Clock::time_point at) = 0;
  /// Returns when every task of this rank is done and its messages have left. Throws PeerError if a
  /// rank is lost or nothing happens for the job's timeout, std::runtime_error naming the task if a
  /// task fails. A runtime that has failed can only be destroyed.
  virtual void wait() = 0;

  // Of the last iteration, after wait().
  virtual std::span<const Interval> intervals() const = 0;  ///< per Program::tasks()
  virtual std::int64_t bytes_sent() const = 0;
  /// Of all gradients that are compressed in stages, until the next iteration begins.
  virtual std::vector<Factor> factors() const { return {}; }
};

/// Where the message of a Send or Recv lies, by its index into Program::tasks().
using Places = std::function<std::span<std::byte>(std::uint32_t index)>;

/// The exchange of some of a program's messages, as their Sends and Recvs say, in this order; a
/// message is named by its Recv.
std::unique_ptr<transport::Exchange> prepare_exchange(
    transport::Endpoint& endpoint, const Program& program, std::span<const std::uint32_t> sends,
    std::span<const std::uint32_t> receives, const Places& place, transport::Events events);

/// What a rank knows of who holds up everything.
enum class Blame : std::uint8_t {
  kSelf,    ///< itself, beyond doubt
  kSender,  ///< a rank whose message waits for no other rank's
  kUnsure,  ///< a rank that may be waiting, too
};

/// How long nothing must have happened before a rank reports who is at fault: the timeout, and up
/// to 0.4 of it more. All notice at about the same time, and all believe the first report. So ranks
/// with better evidence report earlier and, of those with equal evidence, lower ranks.
std::chrono::nanoseconds patience(double timeout_s, Blame blame, int rank);

/// Why nothing happens, as far as one rank can tell.
struct Stall {
  transport::PeerError error;
  std::chrono::nanoseconds patience;  ///< before the rank says so
};

/// What to report when nothing has happened for the timeout. At fault is this rank if a gradient
/// never became ready or it is `busy` with a task (kNoIndex: it is not). Else it is a rank that did
/// not send it a message: that is likelier than one of its own tasks, which may only wait for a
/// message. Else it is this rank, at the first task that is undone.
Stall find_stall(const Program& program, double timeout_s,
                 const std::function<bool(std::uint32_t index)>& undone, std::uint32_t busy);

/// How a job fails on one rank, which is the same on any hardware: the first failure counts, all
/// that wait here are told, and what names no task is told which one it keeps waiting.
class FallibleRuntime {
 public:
  FallibleRuntime(const FallibleRuntime&) = delete;
  FallibleRuntime& operator=(const FallibleRuntime&) = delete;

 protected:
  /// Both must outlive it.
  FallibleRuntime(transport::Endpoint& endpoint, const Program& program, double timeout_s);
  virtual ~FallibleRuntime() = default;

  /// As RankRuntime::wait_until().
  void sleep_until(Clock::time_point at);

  /// Calls `work`, whose errors then name the task, unless they are about the whole rank.
  template <class Work>
  void as_task(std::uint32_t index, const Work& work) const {
    try {
      work();
    } catch (...) {
      rethrow_of_task(index);
    }
  }
  /// Ends the exchange's iteration.
  void finish(transport::Exchange& exchange) const;
  void fail(std::exception_ptr error);
  /// The same error, with the task that it keeps waiting in words.
  transport::PeerError named(const transport::PeerError& error) const;

  // With mutex_ held.
  void rethrow_failure() const;
  /// Ends the job, with who is at fault, if nothing has happened for so long that this rank should
  /// say so; gives the lock up meanwhile. For the arguments see find_stall().
  void end_if_stalled(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds quiet,
                      const std::function<bool(std::uint32_t index)>& undone, std::uint32_t busy);

  transport::Endpoint& endpoint_;
  const Program& program_;
  const double timeout_s_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< what is waited for is done, or the job has failed
  std::exception_ptr failure_;       ///< the first

 private:
  /// What has been caught, with the task's name.
  [[noreturn]] void rethrow_of_task(std::uint32_t index) const;
  /// A failure has come: for threads that wait for something else than changed_. With mutex_ held.
  virtual void on_failure() {}
  /// The task that waits for other ranks, of an error that does not say; kNoIndex.
  virtual std::uint32_t waiting() const = 0;
};

}  // namespace hipress::runtime
