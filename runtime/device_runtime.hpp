#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/operations.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/ready_tasks.hpp"
#include "runtime/rounds.hpp"
#include "runtime/stream_schedule.hpp"
#include "transport/endpoint.hpp"
#include "transport/nccl.hpp"

namespace hipress::runtime {

struct DeviceRuntimeOptions {
  std::uint64_t seed = 1;  ///< of the codecs' random draws
  /// wait() ends the job after so long without a task done, or a little more: see patience().
  double timeout_s = 30;
  /// Moves messages from device to device; null: the endpoint does, through pinned host memory.
  transport::NcclLibrary* nccl = nullptr;
  RoundLimits rounds = {};  ///< of NCCL's groups; the same on every rank
};

/// Runs one rank's program on a device. A task is *issued*, put into a stream of the device, as
/// soon as those that it waits for are; events see to the rest, and the host waits for nothing in
/// between. Only messages that the endpoint moves, through pinned memory, need the host: to hand
/// them over when they are there, and to issue what waits for them.
///
/// Owns a thread that issues, and without NCCL one that sends, and one for all-reduces if there are
/// any. Gradients are copied to the device in begin() and back in wait(), which no interval counts.
class DeviceRuntime : public FallibleRuntime {
 public:
  /// As Runtime; residuals live on the device, and begin as zeros. Both must outlive it.
  /// io::RunError if the device's memory does not suffice. With NCCL all ranks must make it
  /// together.
  DeviceRuntime(transport::Endpoint& endpoint, const Program& program,
                std::vector<std::span<float>> units, Device& device,
                const DeviceRuntimeOptions& options);
  ~DeviceRuntime() override;

  void begin(std::uint64_t iteration) override;
  void start(Clock::time_point at) override;
  void gradient_ready(std::uint32_t gradient, Clock::time_point at) override;
  void wait() override;
  std::span<const Interval> intervals() const override { return intervals_; }
  std::int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  /// Tasks of which the host does a part, in their order. Guarded by mutex_.
  struct Helper {
    std::deque<std::uint32_t> tasks;
    std::condition_variable wake;
    bool running = false;  ///< one that it has taken
    std::thread thread;
  };
  /// This rank's part of a round.
  struct LocalRound {
    std::vector<std::uint32_t> tasks;  ///< Sends, Recvs and AllReduces, in the order of all ranks
    std::vector<transport::NcclOperation> operations;
  };

  void prepare_lengths();
  void prepare_messages();
  void prepare_rounds();
  void start_threads();
  /// Ends those that have been started, and what the device still does.
  void stop();

  void issue_loop();
  void idle(std::unique_lock<std::mutex>& lock);
  /// Throws whom NCCL waits for, which all ranks then know, if nothing has happened for too long.
  bool end_if_nccl_stalls(std::chrono::nanoseconds quiet);
  void look_after_device();
  void serve(Helper& helper, const std::function<void(const LocalTask&, std::uint32_t)>& work);
  void issue(std::uint32_t index);
  void issue_codec(std::uint32_t index);
  void issue_pinned_send(std::uint32_t index);
  /// Enqueues the copy of what a Send moves, and of its length, to pinned memory.
  void copy_out(std::uint32_t index);
  void issue_pinned_receive(std::uint32_t index);
  void issue_pinned_reduce(std::uint32_t index);
  void issue_rounds();
  void issue_round(const LocalRound& round);
  void hand_over(const LocalTask& local, std::uint32_t index);
  std::int64_t bytes_to_send(const LocalTask& local, std::uint32_t index) const;
  void reduce_on_host(const LocalTask& local, std::uint32_t index);
  void run_codec(std::span<const BoundTask> batch, Stream stream);
  /// The casts of an AllReduce, if it has any: before it is summed (kEncode) and after (kDecode).
  void run_cast(const LocalTask& local, casync::Kind kind, Stream stream);

  std::vector<BoundTask> works(std::span<const std::uint32_t> batch) const;
  Operands operands(std::uint32_t index) const;
  std::span<std::byte> used(std::uint32_t message) const;
  std::int64_t message_bytes(const LocalTask& local) const;
  /// Whether the task's message was encoded here, and only the device knows its length.
  bool varies(const LocalTask& local) const;
  std::uint32_t waits_at_first(const LocalTask& local) const;

  void set_origin();
  void wait_for(Event event);
  void wait_for_copies();
  void settle_intervals();

  // With mutex_ held.
  void push(std::uint32_t index, Clock::time_point ready);
  void finished(std::uint32_t index, Clock::time_point at);

  void end_task(std::uint32_t index);
  void arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at);
  void on_failure() override { wake_.notify_one(); }
  std::uint32_t waiting() const override;
  std::span<const transport::NcclOperation> awaited() const;

  std::vector<std::span<float>> host_units_;
  Device& device_;
  const DeviceRuntimeOptions options_;
  DeviceMemory memory_;
  std::vector<std::shared_ptr<const kernels::Codec>> codecs_;  ///< per algorithm of the plan
  /// Per message, as the host knows it: what has arrived, else the bound, which decodes take too.
  std::vector<std::int64_t> message_bytes_;
  std::vector<bool> varies_;  ///< per message: see varies()
  StreamSchedule schedule_;   ///< of the issuing thread, while an iteration is under way
  Event copied_;
  std::uint64_t iteration_ = 0;
  Clock::time_point origin_;             ///< when the schedule's origin was
  std::vector<bool> staged_;             ///< per staging: its copy is enqueued
  std::vector<std::uint8_t> reduced_;    ///< per task: the host has done its part of the AllReduce
  std::vector<Interval> intervals_;      ///< per task
  std::vector<LocalRound> rounds_;       ///< with NCCL
  std::vector<std::uint32_t> round_of_;  ///< per task, kNoIndex
  std::vector<std::uint32_t> round_waits_;  ///< per round: its tasks that cannot be issued yet
  std::uint32_t next_round_ = 0;
  std::uint32_t first_awaited_ = 0;  ///< round that is not known to be done

  // Guarded by mutex_.
  std::condition_variable wake_;          ///< the issuing thread
  ReadyTasks ready_;                      ///< tasks whose predecessors are issued
  std::vector<std::uint32_t> waits_for_;  ///< per task
  std::vector<bool> finished_;            ///< per task
  std::uint32_t remaining_ = 0;           ///< tasks neither issued nor, where the host must, done
  std::int64_t bytes_sent_ = 0;
  bool under_way_ = false;                        ///< an iteration is not known to be done
  std::optional<Clock::time_point> quiet_since_;  ///< wait() was called, and nothing has happened
  bool stopping_ = false;
  Helper sender_, reducer_;
  std::unique_ptr<transport::Collective> library_;  ///< without NCCL, if there are all-reduces
  std::atomic<std::uint32_t> reducing_ = kNoIndex;  ///< the all-reduce that waits for others
  std::unique_ptr<transport::NcclCommunicator> communicator_;
  std::thread issuer_;
  std::unique_ptr<transport::Exchange> exchange_;  ///< last: its threads call arrived()
};

}  // namespace hipress::runtime
