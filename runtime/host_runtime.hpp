#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/host_work.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/ready_tasks.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// Tasks of a program that begin and end together: a number per task, kNoIndex where it does not
/// run, and how many there are. Edges between parts only order tasks, and are left out.
struct Parts {
  std::vector<std::uint32_t> of;
  std::uint32_t count = 0;
};

/// Runs one rank's tasks on CPUs, in parts that begin and end by themselves. It owns one thread for
/// codecs, one that issues sends and, if there are all-reduces, a third for these. They sleep when
/// there is nothing to do. It owns neither the process nor the thread that calls it.
class HostRuntime : public FallibleRuntime {
 protected:
  /// std::invalid_argument if a batch holds tasks of several parts.
  HostRuntime(transport::Endpoint& endpoint, const Program& program, Parts parts, HostWork work,
              double timeout_s);
  ~HostRuntime() override;
  /// Prepares the parts' exchanges, whose threads may say at once that a rank is lost: what derives
  /// from this calls it when it is complete.
  void prepare_exchanges();
  /// Ends the threads and the exchanges; what derives from this calls it while it is complete.
  void stop() noexcept;

  struct Part {
    std::vector<std::uint32_t> tasks;
    HostWork::When when;
    std::uint32_t remaining = 0;  ///< tasks not yet done
    std::unique_ptr<transport::Exchange> exchange;
  };
  Part& part(std::uint32_t number) { return parts_[number]; }

  // With mutex_ held.
  void reset(Part& part, const HostWork::When& when);
  /// Starts the tasks that wait for nothing; `at` is their ready time.
  void start(const Part& part, Clock::time_point at);
  void backward_done(std::uint32_t gradient, Clock::time_point at);
  /// As RankRuntime::await_computation(), with `lock` on mutex_.
  Clock::time_point await_computation(std::unique_lock<std::mutex>& lock, std::uint32_t index);
  void computed(std::uint32_t index, const Interval& when);
  /// Ends the job if no task has been done since then for too long.
  void end_if_stalled_since(std::unique_lock<std::mutex>& lock, Clock::time_point since);
  void run_collective(std::uint32_t index, Clock::time_point ready);
  Clock::duration look() const;  ///< how often to see whether something has happened

  HostWork work_;
  std::vector<Interval> intervals_;  ///< per task
  std::int64_t bytes_sent_ = 0;      ///< guarded by mutex_
  Clock::time_point progress_;       ///< when the last task was done, or a part begun; likewise

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

  // With mutex_ held.
  /// All tasks of the part are done.
  virtual void ended(std::uint32_t part) = 0;
  /// An AllReduce may run.
  virtual void collective_ready(std::uint32_t index, Clock::time_point at) = 0;
  void push(Queue& queue, std::uint32_t index, Clock::time_point ready);
  void complete(std::uint32_t index, Clock::time_point at);
  void release(std::uint32_t index, Clock::time_point at);

  void serve(Queue& queue);
  void run(std::uint32_t index);
  void run_body(const LocalTask& local, std::uint32_t index);
  void count(std::int64_t bytes);
  void send(const LocalTask& local, std::uint32_t index);
  void assign_parts();
  void prepare_messages(Part& part);
  void arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at);
  std::uint32_t waiting() const override { return reducing_; }

  std::vector<std::uint32_t> part_of_;         ///< per task; kNoIndex: it does not run
  std::vector<std::uint32_t> waits_at_first_;  ///< per task: predecessors of its part
  std::vector<std::uint32_t> transfer_of_;     ///< per Send: its number in its part's exchange

  // Guarded by mutex_.
  std::vector<std::uint32_t> waits_for_;  ///< per task: predecessors not yet done, or kDone
  bool stopping_ = false;
  Queue codec_, communication_;
  Queue collective_;  ///< all-reduces, which wait for other ranks; its thread runs if there are any
  std::unique_ptr<transport::Collective> library_;  ///< null without all-reduces
  std::atomic<std::uint32_t> reducing_ = kNoIndex;  ///< the all-reduce that waits for others
  std::vector<Part> parts_;  ///< last: their exchanges' threads call arrived()
};

}  // namespace hipress::runtime
