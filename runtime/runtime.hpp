#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "kernels/codec/state_store.hpp"
#include "runtime/operations.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/ready_tasks.hpp"
#include "runtime/stages.hpp"
#include "runtime/undo.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// What begins and ends together.
enum class Pace : std::uint8_t {
  kIteration,  ///< everything
  kUnit,       ///< every unit of the layout by itself, whatever iteration others are in
};

struct RuntimeOptions {
  std::uint64_t seed = 1;  ///< of the codecs' random draws
  /// wait() ends the job after so long without a task done, or a little more: see patience().
  double timeout_s = 30;
  Pace pace = Pace::kIteration;
  bool keeps_undo = false;  ///< for take_back(), at the pace of units
};

/// Runs one rank's program on CPUs. It owns two threads, one for codecs and one that issues sends,
/// and a third where there are all-reduces, which sleep when there is nothing to do; it owns
/// neither the process nor the thread that calls it. Inputs may change until gradient_ready.
///
/// At the pace of units, an iteration of a unit is begin_unit(), and wait_for_unit() of any thread;
/// nothing of RankRuntime's is called then. Ranks may begin units in any order: each unit is an
/// exchange of its own, in which a message waits at its sender until the receiver has begun, too.
/// All-reduces run in the order of Program::collectives(), over and over, on every rank; edges
/// between units only order tasks, and are left out.
class Runtime : public FallibleRuntime {
 public:
  /// `units[u]` has as many values as unit u of Program::layout() has elements, and stays in place
  /// while the runtime lives, as does `states`, where encoders find what they keep between
  /// iterations. Those of a bulk group hold its members' one after the other, and zeros behind them
  /// at the start of every iteration; gradients that are in a group need no memory of their own,
  /// and factors have the runtime's.
  /// std::invalid_argument if units have a pace of their own and a batch holds tasks of several.
  Runtime(transport::Endpoint& endpoint, const Program& program,
          std::vector<std::span<float>> units, kernels::StateStore& states,
          const RuntimeOptions& options);
  ~Runtime() override;

  void begin(std::uint64_t iteration) override;
  void start(Clock::time_point at) override;
  void gradient_ready(std::uint32_t gradient, Clock::time_point at) override;
  void wait() override;
  std::span<const Interval> intervals() const override { return intervals_; }
  std::int64_t bytes_sent() const override { return bytes_sent_; }
  std::vector<Factor> factors() const override;

  /// Begins an iteration of the unit, which must have members and not be under way; all of its
  /// values are in its memory. `step` is what codecs take for the iteration: it lags behind where
  /// iterations were taken back. A failure is wait_for_unit()'s to tell. Any thread may call it.
  void begin_unit(std::uint32_t unit, std::uint64_t iteration, std::uint64_t step);
  /// Returns a unit whose values are the means and whose messages have left: it may begin again.
  /// Throws as wait(); returns kNoIndex after stop_waiting(). For one thread.
  std::uint32_t wait_for_unit();
  void stop_waiting();
  /// Makes what encoders keep for these elements of a unit, which is not under way, what it was
  /// before the unit's last iteration.
  void take_back(std::uint32_t unit, std::int64_t first, std::int64_t elements) {
    undo_.put_back(unit, first, elements);
  }
  /// States have been replaced: nothing can be taken back that was done before.
  void forget() { undo_.forget(); }
  /// Something else that this rank's part depends on has failed: wait_for_unit() throws that.
  using FallibleRuntime::fail;

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
  /// Tasks that begin and end together.
  struct Part {
    std::vector<std::uint32_t> tasks;
    std::uint64_t iteration = 0;
    std::uint64_t step = 0;       ///< the codecs' iteration
    std::uint32_t remaining = 0;  ///< tasks not yet done
    std::unique_ptr<transport::Exchange> exchange;
  };
  /// At the pace of units: all-reduces that may run, but for those before them in the order.
  struct Turns {
    std::vector<bool> ready;  ///< per place in Program::collectives()
    std::size_t next = 0;
    Clock::time_point last;  ///< ready time of the one that was queued last
  };

  /// Ends those threads that have been started.
  void stop() noexcept;
  void serve(Queue& queue);
  void run(std::uint32_t index);
  void run_body(const LocalTask& local, std::uint32_t index);
  void encode(std::span<const std::uint32_t> batch);
  void decode(std::span<const std::uint32_t> batch);
  void merge(std::span<const std::uint32_t> batch);
  /// Of a staged codec.
  void encode_or_decode(const LocalTask& local, const Part& part);
  /// Lets take_back() put back what these Encodes are about to change.
  void keep(std::span<const std::uint32_t> batch);
  void all_reduce(const LocalTask& local);
  Operands operands(std::uint32_t index) const;
  void send(const LocalTask& local, std::uint32_t index);
  std::span<float> slice(const LocalTask& local) const;
  /// What of it is in use: of a factor, what it has in this iteration.
  std::span<float> used_slice(const LocalTask& local) const;
  std::span<std::byte> buffer(std::uint32_t message) const;
  std::span<std::byte> payload(const LocalTask& local) const;  ///< of a Send or Recv

  // With mutex_ held.
  void push(Queue& queue, std::uint32_t index, Clock::time_point ready);
  void complete(std::uint32_t index, Clock::time_point at);
  void release(std::uint32_t index, Clock::time_point at);
  void take_turn(std::uint32_t index, Clock::time_point at);
  void reset(Part& part, std::uint64_t iteration, std::uint64_t step);
  void start(const Part& part, Clock::time_point at);
  /// Ends the job if no task has been done since then for too long.
  void end_if_stalled_since(std::unique_lock<std::mutex>& lock, Clock::time_point since);

  std::uint32_t part_number(const LocalTask& local) const;
  void assign_parts();
  void prepare_messages(Part& part);
  void prepare_states(kernels::StateStore& states);
  void prepare_stages(kernels::StateStore& states);
  void arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at);
  std::uint32_t waiting() const override { return reducing_; }

  std::vector<std::span<float>> units_;
  std::vector<float> factor_memory_;
  std::map<std::uint32_t, StagedUnit> staged_;  ///< by unit
  RuntimeOptions options_;

  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> arena_;   ///< all messages
  std::vector<std::int64_t> message_bytes_;  ///< in use, per message
  std::vector<kernels::State> states_;       ///< per task
  Undo undo_;
  std::vector<std::uint32_t> undo_of_;  ///< per task: its encoder there, or kNoIndex
  std::map<std::uint32_t, std::vector<std::uint32_t>> undo_of_staged_;  ///< the same, by unit
  std::vector<Interval> intervals_;                                     ///< per task
  std::vector<std::uint32_t> part_of_;         ///< per task; kNoIndex: it does not run
  std::vector<std::uint32_t> waits_at_first_;  ///< per task: predecessors of its part
  std::vector<std::uint32_t> transfer_of_;     ///< per Send: its number in its part's exchange
  std::int64_t bytes_sent_ = 0;

  // Guarded by mutex_.
  std::vector<std::uint32_t> waits_for_;  ///< per task: predecessors not yet done, or kDone
  Clock::time_point progress_;            ///< when the last task was done, or a unit begun
  std::uint32_t under_way_ = 0;           ///< units
  std::deque<std::uint32_t> ended_;       ///< units, for wait_for_unit()
  bool waiting_stops_ = false;
  bool stopping_ = false;
  Turns turns_;
  Queue codec_, communication_;
  Queue collective_;  ///< all-reduces, which wait for other ranks; its thread runs if there are any
  std::unique_ptr<transport::Collective> library_;  ///< null without all-reduces
  std::atomic<std::uint32_t> reducing_ = kNoIndex;  ///< the all-reduce that waits for others
  std::vector<Part> parts_;  ///< last: their exchanges' threads call arrived()
};

}  // namespace hipress::runtime
