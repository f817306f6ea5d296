#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "io/thread_variables.hpp"
#include "runtime/mover.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;

/// Thread that does the host's part of tasks, in FIFO order.
class HostThread {
 public:
  explicit HostThread(std::function<void(std::uint32_t index)> work) : work_(std::move(work)) {}
  ~HostThread() {
    interrupt();
    join();
  }
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  void start() {
    thread_ = io::start_thread([this] { serve(); });
  }

  void push(std::uint32_t index) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(index);
    wake_.notify_one();
  }

  /// Lets no further task start; true if one is running.
  bool interrupt() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    return running_;
  }

  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      const std::uint32_t index = tasks_.front();
      tasks_.pop_front();
      running_ = true;
      lock.unlock();
      work_(index);
      lock.lock();
      running_ = false;
    }
  }

  const std::function<void(std::uint32_t index)> work_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::uint32_t> tasks_;
  bool running_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

class PinnedMover final : public Mover {
 public:
  PinnedMover(transport::Endpoint& endpoint, DeviceWork& work, MoverEvents& events)
      : endpoint_(endpoint),
        work_(work),
        events_(events),
        staged_(work.memory.layout().staging.size()),
        reduced_(work.program.tasks().size()),
        sender_([this](std::uint32_t index) {
          events_.attempt(index, [this, index] { hand_over(index); });
        }),
        reducer_([this](std::uint32_t index) {
          events_.attempt(index, [this, index] { reduce(index); });
        }) {}

  void start() override {
    const Program& program = work_.program;
    exchange_ = prepare_exchange(
        endpoint_, program, program.sends(), program.receives(),
        [this](std::uint32_t index) { return work_.memory.staging(index); },
        {.arrived =
             [this](std::uint32_t tag, std::int64_t bytes, Clock::time_point at) {
               events_.arrived(work_.program.index_of(tag), bytes, at);
             },
         .failed = [this](const transport::PeerError& error) { events_.failed(error); }});
    if (!program.collectives().empty()) library_ = endpoint_.collective();
    sender_.start();
    if (library_) reducer_.start();
  }

  void begin(std::uint64_t iteration) override {
    std::fill(staged_.begin(), staged_.end(), false);
    std::fill(reduced_.begin(), reduced_.end(), std::uint8_t{0});
    exchange_->begin(iteration);
  }

  void issue(std::uint32_t index) override {
    switch (work_.program.tasks()[index].task.kind) {
      case Kind::kSend:
        return issue_send(index);
      case Kind::kRecv:
        return issue_receive(index);
      default:
        return issue_reduce(index);
    }
  }

  void finish() override { exchange_->finish(); }
  std::uint32_t waiting() const override { return reducing_; }

  /// The host measures the end of a Send, when the transport has accepted it, and the start of an
  /// AllReduce, which is issued in two parts.
  Measured by_host(Kind kind) const override {
    return {.start = kind == Kind::kAllReduce, .end = kind == Kind::kSend};
  }

  void interrupt() override {
    sender_.interrupt();
    if (reducer_.interrupt()) library_->interrupt();  // it may run after a failure
  }

  void end(bool /*under_way*/) override {
    sender_.join();
    reducer_.join();
    exchange_.reset();  // destroyed after the sender thread has ended
  }

 private:
  void issue_send(std::uint32_t index) {
    const DeviceLayout& layout = work_.memory.layout();
    const std::uint32_t place = layout.staging_of[index];
    if (layout.staging[place].comes_in) {  // forwarded from pinned memory
      work_.schedule.pass(index);
      return sender_.push(index);
    }
    work_.schedule.enqueue(Stream::kOutbound, {&index, 1}, [&] {
      if (!staged_[place]) {
        copy_out(index);
        staged_[place] = true;
      }
      work_.device.call([this, index] { sender_.push(index); }, Stream::kOutbound);
    });
  }

  /// Enqueues copies of a Send's payload and its length to pinned memory.
  void copy_out(std::uint32_t index) {
    const LocalTask& local = work_.program.tasks()[index];
    const DeviceMemory& memory = work_.memory;
    work_.device.copy(memory.staging(index).data(), memory.payload(local).data(),
                      memory.most_bytes(local), Stream::kOutbound);
    if (!work_.varies(local)) return;
    work_.device.copy(memory.pinned_length(local.message), memory.length(local.message),
                      sizeof(std::int64_t), Stream::kOutbound);
  }

  void issue_receive(std::uint32_t index) {
    const LocalTask& local = work_.program.tasks()[index];
    work_.schedule.enqueue(Stream::kInbound, {&index, 1}, [&] {
      work_.device.copy(work_.memory.payload(local).data(), work_.memory.staging(index).data(),
                        work_.message_bytes(local), Stream::kInbound);
    });
    events_.issued(index);
  }

  void issue_reduce(std::uint32_t index) {
    const LocalTask& local = work_.program.tasks()[index];
    const std::span<std::byte> values = work_.memory.payload(local);
    const std::span<std::byte> pinned = work_.memory.staging(index);
    const auto bytes = static_cast<std::int64_t>(values.size());
    if (reduced_[index] != 0) {
      work_.schedule.enqueue(Stream::kInbound, {&index, 1}, [&] {
        work_.device.copy(values.data(), pinned.data(), bytes, Stream::kInbound);
        work_.run_cast(local, Kind::kDecode, Stream::kInbound);
      });
      return events_.issued(index);
    }
    work_.schedule.enqueue(Stream::kOutbound, {&index, 1}, [&] {
      work_.run_cast(local, Kind::kEncode, Stream::kOutbound);
      work_.device.copy(pinned.data(), values.data(), bytes, Stream::kOutbound);
      work_.device.call([this, index] { reducer_.push(index); }, Stream::kOutbound);
    });
  }

  // Run on the mover's own threads.

  void hand_over(std::uint32_t index) {
    const LocalTask& local = work_.program.tasks()[index];
    const std::int64_t bytes = bytes_to_send(local, index);
    Interval when;
    when.start = Clock::now();
    exchange_->send(local.transfer, bytes);
    when.end = Clock::now();
    events_.count(bytes);
    events_.sent(index, when);
  }

  std::int64_t bytes_to_send(const LocalTask& local, std::uint32_t index) const {
    const DeviceLayout& layout = work_.memory.layout();
    const bool comes_in = layout.staging[layout.staging_of[index]].comes_in;
    if (comes_in || !work_.varies(local)) return work_.message_bytes(local);
    const std::int64_t bytes = *work_.memory.pinned_length(local.message),
                       most = work_.memory.most_bytes(local);
    if (bytes >= 0 && bytes <= most) return bytes;
    throw io::RunError(fmt::format(
        "the GPU encoded a message of {} bytes where at most {} are possible", bytes, most));
  }

  void reduce(std::uint32_t index) {
    const LocalTask& local = work_.program.tasks()[index];
    reducing_ = index;
    const std::span<std::byte> bytes = work_.memory.staging(index);
    if (casync::casts(local.task)) {  // the cast runs on the device
      library_->all_reduce(bytes, addition(work_.program.cast_of(local)));
    } else {
      auto* const values = reinterpret_cast<float*>(bytes.data());
      const auto elements = static_cast<std::size_t>(local.slice.elements);
      all_reduce(local.task, work_.program.graph().divisor, nullptr, *library_,
                 {{values, elements}, {}, {}, {}});
    }
    reducing_ = kNoIndex;
    reduced_[index] = 1;
    events_.count(casync::bytes_sent(work_.program.graph(), local.task));
    events_.returned(index, Clock::now());
  }

  transport::Endpoint& endpoint_;
  DeviceWork& work_;
  MoverEvents& events_;
  std::vector<bool> staged_;  ///< per staging: its copy is enqueued
  /// Per task: true once the host's part of the AllReduce is done
  std::vector<std::uint8_t> reduced_;
  std::unique_ptr<transport::Collective> library_;  ///< null without all-reduces
  std::atomic<std::uint32_t> reducing_ = kNoIndex;  ///< all-reduce that waits for other ranks
  HostThread sender_, reducer_;
  std::unique_ptr<transport::Exchange> exchange_;  ///< last: its threads call events
};

}  // namespace

std::unique_ptr<Mover> make_pinned_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                         MoverEvents& events) {
  return std::make_unique<PinnedMover>(endpoint, work, events);
}

}  // namespace hipress::runtime
