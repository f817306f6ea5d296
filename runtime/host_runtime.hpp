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

/// Division of a program's tasks into parts; the tasks of a part begin and end together. `of` has a
/// part number per task (kNoIndex: the task does not run), `count` is the number of parts. Edges
/// between parts are ignored, as they only order tasks.
struct Parts {
  std::vector<std::uint32_t> of;
  std::uint32_t count = 0;
};

/// Runs one rank's tasks on CPUs, in parts that begin and end independently. Owns one thread for
/// codecs, one that issues sends and, if there are all-reduces, one for these.
class HostRuntime : public FallibleRuntime {
 protected:
  /// Throws std::invalid_argument if a batch holds tasks of several parts.
  HostRuntime(transport::Endpoint& endpoint, const Program& program, Parts parts, HostWork work,
              double timeout_s);
  ~HostRuntime() override;
  /// Prepares the parts' exchanges. A derived class calls this at the end of its construction,
  /// because the exchanges' threads may report a lost rank at once.
  void prepare_exchanges();
  /// Ends the threads and the exchanges. A derived class calls this at the start of its
  /// destruction.
  void stop() noexcept;

  struct Part {
    std::vector<std::uint32_t> tasks;
    HostWork::When when;
    std::uint32_t remaining = 0;  ///< tasks not yet done
    std::unique_ptr<transport::Exchange> exchange;
  };
  Part& part(std::uint32_t number) { return parts_[number]; }

  // The caller holds mutex_.
  void reset(Part& part, const HostWork::When& when);
  /// Starts the tasks without predecessors; `at` is their ready time.
  void start(const Part& part, Clock::time_point at);
  void backward_done(std::uint32_t gradient, Clock::time_point at);
  /// See RankRuntime::await_computation(); `lock` is on mutex_.
  Clock::time_point await_computation(std::unique_lock<std::mutex>& lock, std::uint32_t index);
  void computed(std::uint32_t index, const Interval& when);
  /// Aborts the job if this rank's patience has passed since the last progress, at `since`.
  void end_if_stalled_since(std::unique_lock<std::mutex>& lock, Clock::time_point since);
  void run_collective(std::uint32_t index, Clock::time_point ready);
  Clock::duration look() const;  ///< polling interval of waits

  HostWork work_;
  std::vector<Interval> intervals_;  ///< per task
  std::int64_t bytes_sent_ = 0;      ///< guarded by mutex_
  Clock::time_point progress_;  ///< last completion of a task or start of a part; guarded by mutex_

 private:
  /// Tasks whose predecessors are done, and the thread that runs them. Guarded by mutex_.
  struct Queue {
    ReadyTasks ready;
    std::condition_variable wake;
    bool sleeping = false;
    bool running = false;    ///< `task` is running
    std::uint32_t task = 0;  ///< last task taken
    std::thread thread;
  };

  // The caller holds mutex_.
  /// Called when all tasks of the part are done.
  virtual void ended(std::uint32_t part) = 0;
  /// Called when an AllReduce may run.
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
  std::vector<std::uint32_t> waits_at_first_;  ///< per task: number of predecessors in its part
  std::vector<std::uint32_t> transfer_of_;     ///< per Send: its number in its part's exchange

  // Guarded by mutex_.
  /// Per task: number of predecessors not yet done, or kDone.
  std::vector<std::uint32_t> waits_for_;
  bool stopping_ = false;
  Queue codec_, communication_;
  Queue collective_;  ///< all-reduces, which wait for other ranks; no thread without them
  std::unique_ptr<transport::Collective> library_;  ///< null without all-reduces
  std::atomic<std::uint32_t> reducing_ = kNoIndex;  ///< all-reduce that waits for other ranks
  std::vector<Part> parts_;  ///< last: the threads of their exchanges use the members above
};

}  // namespace hipress::runtime
