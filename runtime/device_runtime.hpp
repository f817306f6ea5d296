#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/device_work.hpp"
#include "runtime/mover.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/ready_tasks.hpp"
#include "runtime/rounds.hpp"
#include "transport/endpoint.hpp"
#include "transport/nccl.hpp"

namespace hipress::runtime {

struct DeviceRuntimeOptions {
  std::uint64_t seed = 1;  ///< seed of the codecs' random draws
  /// Seconds without a finished task after which wait() aborts the job; patience() says how much
  /// longer it may take.
  double timeout_s = 30;
  /// Moves messages from device to device; null: the endpoint moves them through pinned host
  /// memory.
  transport::NcclLibrary* nccl = nullptr;
  RoundLimits rounds = {};  ///< limits of NCCL's groups; the same on every rank
};

/// Runs one rank's program on a device. A task is *issued*, that is, enqueued on a stream of the
/// device, as soon as its predecessors are issued. Events make the streams wait; the host does not
/// wait in between. The host is needed only for messages that the endpoint moves: it sends them
/// when they are in pinned memory, and then issues their successors. In a stepped program, the host
/// also waits before each computation until the device has done the work that it depends on.
///
/// Owns a thread that issues tasks, and the threads of its mover. Gradients are copied to the
/// device in begin() and back in wait(); no interval includes these copies.
class DeviceRuntime : public RankRuntime, private FallibleRuntime, private MoverEvents {
 public:
  /// `units` are as for Runtime. Residuals live on the device and begin as zeros. `endpoint`,
  /// `program`, `device`, the memory of `units` and DeviceRuntimeOptions::nccl must outlive the
  /// runtime. Throws io::RunError if the device's memory does not suffice. With NCCL the
  /// constructor is collective: it returns when all ranks have called it.
  DeviceRuntime(transport::Endpoint& endpoint, const Program& program,
                std::vector<std::span<float>> units, Device& device,
                const DeviceRuntimeOptions& options);
  ~DeviceRuntime() override;

  void begin(std::uint64_t iteration) override;
  void start(Clock::time_point at) override;
  void gradient_ready(std::uint32_t gradient, Clock::time_point at) override;
  Clock::time_point await_computation(std::uint32_t index) override;
  void computed(std::uint32_t index, const Interval& when) override;
  void wait_until(Clock::time_point at) override { sleep_until(at); }
  void wait() override;
  std::span<const Interval> intervals() const override { return intervals_; }
  std::int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  // Functions of MoverEvents.
  void issued(std::uint32_t index) override;
  void sent(std::uint32_t index, const Interval& when) override;
  void returned(std::uint32_t index, Clock::time_point at) override;
  void arrived(std::uint32_t index, std::int64_t bytes, Clock::time_point at) override;
  void count(std::int64_t bytes) override;
  void happened() override;
  void attempt(std::uint32_t index, const std::function<void()>& work) override;
  void failed(const transport::PeerError& error) override;

  /// Ends the threads and the device's pending work.
  void stop();
  void issue_loop();
  void idle(std::unique_lock<std::mutex>& lock);
  void issue(std::uint32_t index);
  bool is_stepped_computation(std::uint32_t index) const;
  /// Removes from awaited_ the computation tasks that the device has reached; returns their times.
  std::vector<std::pair<std::uint32_t, Clock::time_point>> take_reached();
  /// Calls the mover; its errors then name the waiting task.
  template <class Work>
  auto as_mover(const Work& work) const {
    try {
      return work();
    } catch (const transport::PeerError& error) {
      throw named(error);
    }
  }
  std::uint32_t waits_at_first(const LocalTask& local) const;

  void set_origin();
  void wait_for(Event event);
  void wait_for_copies();
  void settle_intervals();

  // The caller holds mutex_.
  void push(std::uint32_t index, Clock::time_point ready);
  void finished(std::uint32_t index, Clock::time_point at);
  void note_progress();

  void on_failure() override { wake_.notify_one(); }
  std::uint32_t waiting() const override { return mover_->waiting(); }

  std::vector<std::span<float>> host_units_;
  DeviceWork work_;
  const Event copied_;
  Clock::time_point origin_;  ///< host time of the schedule's origin
  /// Computation tasks with issued predecessors that the device has not reached; issuing thread
  /// only.
  std::vector<std::uint32_t> awaited_;
  std::vector<Interval> intervals_;  ///< per task

  // Guarded by mutex_.
  std::condition_variable wake_;          ///< wakes the issuing thread
  ReadyTasks ready_;                      ///< tasks whose predecessors are issued
  std::vector<std::uint32_t> waits_for_;  ///< per task
  std::vector<bool> finished_;            ///< per task
  /// Per task, for computation that waits for other tasks: true once it may begin.
  std::vector<bool> may_begin_;
  /// Number of tasks that are not yet issued, or of which the host has not yet done its part.
  std::uint32_t remaining_ = 0;
  std::int64_t bytes_sent_ = 0;
  bool under_way_ = false;  ///< an iteration may still be running
  /// Start of the time without progress, during wait() or await_computation().
  std::optional<Clock::time_point> quiet_since_;
  bool stopping_ = false;
  std::unique_ptr<Mover> mover_;
  std::thread issuer_;
};

}  // namespace hipress::runtime
