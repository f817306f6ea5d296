#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "executor/program.hpp"
#include "transport/endpoint.hpp"

namespace hipress::executor {

using transport::Clock;

/// When a task ran. A Send's end here is when the transport took it over.
struct Interval {
  Clock::time_point start, end;
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
  /// Sleeps until then, or throws like wait() as soon as the iteration has failed.
  virtual void wait_until(Clock::time_point at) = 0;
  /// Returns when every task of this rank is done and its messages have left. Throws PeerError if a
  /// rank is lost or nothing happens for so long as the job's timeout, std::runtime_error naming
  /// the task if one fails. A runtime that has failed is good for nothing but destruction.
  virtual void wait() = 0;

  // Of the last iteration, after wait().
  virtual std::span<const Interval> intervals() const = 0;  ///< per Program::tasks()
  virtual std::int64_t bytes_sent() const = 0;
};

/// Where the message of a Send or Recv lies, by its index into Program::tasks().
using Places = std::function<std::span<std::byte>(std::uint32_t index)>;

/// The exchange of a program's messages; a message is named by its Recv.
std::unique_ptr<transport::Exchange> prepare_exchange(transport::Endpoint& endpoint,
                                                      const Program& program, const Places& place,
                                                      transport::Events events);

/// What to say when nothing has happened for the timeout: who did not send a message, which is a
/// likelier cause than a task of one's own, which may only wait for one; else at which task this
/// rank stands, `otherwise` where none is undone (kNone: the end).
transport::PeerError stalled(const Program& program, double timeout_s,
                             const std::function<bool(std::uint32_t index)>& undone,
                             std::uint32_t otherwise = kNone);

}  // namespace hipress::executor
