#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/operations.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/ready_tasks.hpp"
#include "kernels/codec/codec.hpp"
#include "kernels/codec/state_store.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

struct RuntimeOptions {
  std::uint64_t seed = 1;  ///< of the codecs' random draws
  /// wait() ends the job after so long without a task done, or a little more: see patience().
  double timeout_s = 30;
};

/// Runs one rank's program on CPUs. It owns two threads, one for codecs and one that issues sends,
/// and a third where there are all-reduces, which sleep when there is nothing to do; it owns
/// neither the process nor the thread that calls it. Inputs may change until gradient_ready.
class Runtime : public RankRuntime {
 public:
  /// `units[u]` has as many values as unit u of Program::layout() has elements, and stays in place
  /// while the runtime lives, as does `states`, where encoders find what they keep between
  /// iterations. Those of a bulk group hold its members' one after the other, and zeros behind them
  /// at the start of every iteration; gradients that are in a group need no memory of their own.
  Runtime(transport::Endpoint& endpoint, const Program& program,
          std::vector<std::span<float>> units, kernels::StateStore& states,
          const RuntimeOptions& options);
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void begin(std::uint64_t iteration) override;
  void start(Clock::time_point at) override;
  void gradient_ready(std::uint32_t gradient, Clock::time_point at) override;
  void wait_until(Clock::time_point at) override;
  void wait() override;
  std::span<const Interval> intervals() const override { return intervals_; }
  std::int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  /// Tasks whose predecessors are done, and the thread that they wait for. Guarded by mutex_.
  struct Queue {
    ReadyTasks ready;
    std::condition_variable wake;
    bool sleeping = false;
    bool running = false;    ///< `task`
    std::uint32_t task = 0;  ///< the last one taken
    std::thread thread;
  };

  /// Ends those threads that have been started.
  void stop() noexcept;
  void serve(Queue& queue);
  void run(std::uint32_t index);
  void encode(std::span<const std::uint32_t> batch);
  void decode(std::span<const std::uint32_t> batch);
  void merge(std::span<const std::uint32_t> batch);
  void all_reduce(const LocalTask& local);
  Operands operands(std::uint32_t index) const;
  void send(const LocalTask& local);
  std::span<float> slice(const LocalTask& local) const;
  std::span<std::byte> buffer(std::uint32_t message) const;
  std::span<std::byte> payload(const LocalTask& local) const;  ///< of a Send or Recv

  // With mutex_ held.
  void push(Queue& queue, std::uint32_t index, Clock::time_point ready);
  void complete(std::uint32_t index, Clock::time_point at);
  void release(std::uint32_t index, Clock::time_point at);
  void rethrow_failure();
  /// Ends the job, with who is at fault, if no task has been done since then for too long; gives
  /// the lock up meanwhile.
  void end_if_stalled(std::unique_lock<std::mutex>& lock, Clock::time_point since);

  void prepare_messages();
  void prepare_states(kernels::StateStore& states);
  void arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at);
  void fail(std::exception_ptr error);
  /// The same error, with the task that it keeps waiting in words.
  transport::PeerError named(const transport::PeerError& error) const;

  transport::Endpoint& endpoint_;
  const Program& program_;
  std::vector<std::span<float>> units_;
  RuntimeOptions options_;
  std::uint64_t iteration_ = 0;

  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> arena_;   ///< all messages
  std::vector<std::int64_t> message_bytes_;  ///< in use, per message
  std::vector<kernels::State> states_;       ///< per task
  std::vector<Interval> intervals_;          ///< per task
  std::int64_t bytes_sent_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;       ///< the iteration is done or has failed
  std::vector<std::uint32_t> waits_for_;  ///< per task: predecessors not yet done, or kDone
  std::uint32_t remaining_ = 0;           ///< tasks not yet done
  Clock::time_point progress_;            ///< when the last one was
  std::exception_ptr failure_;
  bool stopping_ = false;
  Queue codec_, communication_;
  Queue collective_;  ///< all-reduces, which wait for other ranks; its thread runs if there are any
  std::unique_ptr<transport::Collective> library_;  ///< null without all-reduces
  std::atomic<std::uint32_t> reducing_ = kNone;     ///< the all-reduce that waits for others
  std::unique_ptr<transport::Exchange> exchange_;   ///< last: its threads call arrived()
};

}  // namespace hipress::runtime
