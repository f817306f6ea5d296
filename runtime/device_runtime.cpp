#include "runtime/device_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "io/error.hpp"
#include "io/thread_variables.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;

/// Polling interval for the device and the mover. With a shorter one, the end of an iteration is
/// noticed sooner (its measured time does not depend on this); a longer one saves calls.
constexpr auto kLook = std::chrono::microseconds(50);

/// Polling interval while the host's part of a task is awaited: polls then only detect failures.
constexpr auto kSeldom = std::chrono::microseconds(100'000);

std::chrono::nanoseconds from_s(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

bool is_transfer(Kind kind) {
  return kind == Kind::kSend || kind == Kind::kRecv || kind == Kind::kAllReduce;
}

}  // namespace

DeviceRuntime::DeviceRuntime(transport::Endpoint& endpoint, const Program& program,
                             std::vector<std::span<float>> units, Device& device,
                             const DeviceRuntimeOptions& options)
    : FallibleRuntime(endpoint, program, options.timeout_s),
      host_units_(std::move(units)),
      work_(program, device, options.nccl ? DeviceTransport::kNccl : DeviceTransport::kPinned,
            options.seed),
      copied_(device.make_event()),
      intervals_(program.tasks().size()),
      waits_for_(program.tasks().size()),
      finished_(program.tasks().size()),
      may_begin_(program.tasks().size()) {
  const NcclOptions nccl{options.nccl, options.rounds, options.timeout_s};
  mover_ = options.nccl ? make_nccl_mover(endpoint, work_, *this, nccl)
                        : make_pinned_mover(endpoint, work_, *this);
  work_.memory.allocate();
  ready_.reserve(program.tasks().size());
  try {
    mover_->start();
    issuer_ = io::start_thread([this] { issue_loop(); });
  } catch (...) {
    stop();  // the destructor does not run
    throw;
  }
}

DeviceRuntime::~DeviceRuntime() { stop(); }

void DeviceRuntime::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  mover_->interrupt();
  if (issuer_.joinable()) issuer_.join();
  bool under_way = false;
  {
    const std::lock_guard lock(mutex_);
    under_way = failure_ || under_way_;
  }
  mover_->end(under_way);
  work_.device.drain();  // its callbacks use this object
}

std::uint32_t DeviceRuntime::waits_at_first(const LocalTask& local) const {
  const bool awaits_send = mover_->orders_receives() && local.task.kind == Kind::kRecv;
  return local.waits_for - (awaits_send ? 1 : 0);
}

void DeviceRuntime::begin(std::uint64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    rethrow_failure();
    bytes_sent_ = 0;
    remaining_ = static_cast<std::uint32_t>(program_.tasks().size());
    for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
      waits_for_[index] = waits_at_first(program_.tasks()[index]);
    }
  }
  std::fill(finished_.begin(), finished_.end(), false);
  std::fill(may_begin_.begin(), may_begin_.end(), false);
  work_.begin(iteration);
  work_.memory.copy_in(host_units_, Stream::kOwnCodec);
  wait_for_copies();
  set_origin();
  mover_->begin(iteration);
}

/// Determines the host time of the device's origin: the time at which the host sees the recorded
/// event. Repeats until that is less than kClose after the event was recorded.
void DeviceRuntime::set_origin() {
  constexpr auto kClose = std::chrono::microseconds(100);
  constexpr int kTries = 20;  // in case the thread is preempted
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point before = Clock::now();
    work_.schedule.begin();
    wait_for(work_.schedule.origin());
    origin_ = Clock::now();
    if (origin_ - before < kClose) return;
  }
}

void DeviceRuntime::start(Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  under_way_ = true;
  for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
    const LocalTask& local = program_.tasks()[index];
    if (is_stepped_computation(index)) continue;  // computed() completes it
    const bool starts = local.task.kind == Kind::kForward ||
                        (waits_at_first(local) == 0 && local.task.kind != Kind::kBackward);
    if (starts) push(index, at);
  }
  wake_.notify_one();
}

void DeviceRuntime::gradient_ready(std::uint32_t gradient, Clock::time_point at) {
  const std::uint32_t index = program_.backward_of(gradient);
  const std::lock_guard lock(mutex_);
  push(index, at);
}

Clock::time_point DeviceRuntime::await_computation(std::uint32_t index) {
  std::unique_lock lock(mutex_);
  if (waits_at_first(program_.tasks()[index]) == 0) {
    rethrow_failure();
    return Clock::time_point::min();
  }
  quiet_since_ = Clock::now();
  changed_.wait(lock, [&] { return may_begin_[index] || failure_; });
  quiet_since_.reset();
  rethrow_failure();
  return intervals_[index].start;
}

void DeviceRuntime::computed(std::uint32_t index, const Interval& when) {
  const std::lock_guard lock(mutex_);
  intervals_[index] = when;
  finished(index, when.end);
}

void DeviceRuntime::wait() {
  {
    std::unique_lock lock(mutex_);
    quiet_since_ = Clock::now();
    changed_.wait(lock, [this] { return !under_way_ || failure_; });
    quiet_since_.reset();
    rethrow_failure();
  }
  as_mover([&] { mover_->finish(); });
  settle_intervals();
  work_.memory.copy_out(host_units_, Stream::kOwnCodec);
  wait_for_copies();
}

// -------------------------------------------------------------------------------- issuing

void DeviceRuntime::issue_loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (failure_ || (ready_.empty() && !under_way_)) {
      wake_.wait(lock);
    } else if (ready_.empty()) {
      idle(lock);
    } else {
      const std::uint32_t index = ready_.pop();
      lock.unlock();
      try {
        as_task(index, [&] { issue(index); });
      } catch (...) {
        fail(std::current_exception());
      }
      lock.lock();
      note_progress();
    }
  }
}

/// Called when there is nothing to issue: checks if computation may begin, and if the iteration is
/// over or stalled.
void DeviceRuntime::idle(std::unique_lock<std::mutex>& lock) {
  const bool host_is_done = remaining_ == 0;
  lock.unlock();
  bool device_is_done = false;
  std::vector<std::pair<std::uint32_t, Clock::time_point>> reached;
  try {
    as_mover([&] { mover_->look(); });
    reached = take_reached();
    device_is_done = work_.schedule.done();
  } catch (...) {
    fail(std::current_exception());
  }
  lock.lock();
  for (const auto& [index, at] : reached) {
    intervals_[index].start = std::max(intervals_[index].start, at);
    may_begin_[index] = true;
    note_progress();
    changed_.notify_all();
  }
  if (host_is_done && device_is_done) {
    under_way_ = false;
    changed_.notify_all();
    return;
  }
  const std::chrono::nanoseconds quiet =
      quiet_since_ ? Clock::now() - *quiet_since_ : std::chrono::nanoseconds(0);
  if (quiet > from_s(timeout_s_) && !failure_ && !stopping_) {
    lock.unlock();
    std::uint32_t busy = kNoIndex;
    bool blames = false;
    try {
      blames = as_mover([&] { return mover_->may_be_blamed(quiet); });
      // If `blames`, no enqueued work waits for another rank: with NCCL, no round is pending. An
      // unfinished entry is therefore itself the cause.
      busy = work_.schedule.first_undone();
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
    const auto undone = [this](std::uint32_t index) { return !finished_[index]; };
    if (!failure_ && blames) end_if_stalled(lock, quiet, undone, busy);
  }
  if (failure_ || stopping_ || !ready_.empty()) return;  // the state has changed meanwhile
  if (host_is_done != (remaining_ == 0)) return;
  // Tasks, arrivals and gradients wake this thread; the device, its library and their failures do
  // not.
  const bool often = host_is_done || !awaited_.empty() || mover_->needs_looks();
  wake_.wait_for(lock, often ? kLook : kSeldom);
}

bool DeviceRuntime::is_stepped_computation(std::uint32_t index) const {
  return program_.is_stepped() && casync::is_computation(program_.tasks()[index].task);
}

std::vector<std::pair<std::uint32_t, Clock::time_point>> DeviceRuntime::take_reached() {
  std::vector<std::pair<std::uint32_t, Clock::time_point>> reached;
  std::erase_if(awaited_, [&](std::uint32_t index) {
    const std::optional<double> at_s = work_.schedule.reached_s(index);
    if (at_s) reached.emplace_back(index, origin_ + from_s(*at_s));
    return at_s.has_value();
  });
  return reached;
}

void DeviceRuntime::issue(std::uint32_t index) {
  const casync::Task& task = program_.tasks()[index].task;
  if (is_transfer(task.kind)) return mover_->issue(index);
  if (is_stepped_computation(index)) {  // await_computation() waits for it
    work_.schedule.pass(index);
    awaited_.push_back(index);
    return;
  }
  if (casync::is_instant(task) || casync::is_computation(task)) {
    work_.schedule.pass(index);
  } else {
    work_.enqueue_codec(index);
  }
  issued(index);
}

void DeviceRuntime::wait_for_copies() {
  work_.device.record(copied_, Stream::kOwnCodec);
  wait_for(copied_);
}

void DeviceRuntime::wait_for(Event event) {
  const auto deadline = Clock::now() + from_s(timeout_s_);
  while (!work_.device.done(event)) {
    if (Clock::now() > deadline) {
      throw io::RunError(fmt::format("the GPU of rank {} has been copying gradients for {} s",
                                     program_.node(), timeout_s_));
    }
    std::this_thread::yield();
  }
}

void DeviceRuntime::settle_intervals() {
  for (std::uint32_t index = 0; index < intervals_.size(); ++index) {
    const StreamSchedule::Times times = work_.schedule.times(index);
    if (!times.timed) continue;
    const Kind kind = program_.tasks()[index].task.kind;
    Interval& interval = intervals_[index];
    const Mover::Measured by_host = mover_->by_host(kind);
    if (!by_host.start) interval.start = origin_ + from_s(times.start_s);
    if (!by_host.end) interval.end = origin_ + from_s(times.end_s);
    if (kind == Kind::kRecv) interval.start = interval.end;  // the start marks the arrival
    // The two ends may come from different clocks.
    interval.start = std::min(interval.start, interval.end);
  }
}

// ----------------------------------------------------------------------------------- state

void DeviceRuntime::push(std::uint32_t index, Clock::time_point ready) {
  intervals_[index] = {ready, ready};
  ready_.push(index, program_.tasks()[index].order, ready);
  wake_.notify_one();
}

void DeviceRuntime::finished(std::uint32_t index, Clock::time_point at) {
  finished_[index] = true;
  --remaining_;
  for (const std::uint32_t next : program_.successors(program_.tasks()[index])) {
    if (--waits_for_[next] == 0) push(next, at);
  }
  note_progress();
  if (remaining_ == 0) wake_.notify_one();
}

void DeviceRuntime::note_progress() {
  if (quiet_since_) quiet_since_ = Clock::now();
}

void DeviceRuntime::issued(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  finished(index, Clock::now());
}

void DeviceRuntime::sent(std::uint32_t index, const Interval& when) {
  const std::lock_guard lock(mutex_);
  intervals_[index] = when;
  finished(index, when.end);
}

void DeviceRuntime::returned(std::uint32_t index, Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  ready_.push(index, program_.tasks()[index].order, at);
  wake_.notify_one();
}

void DeviceRuntime::arrived(std::uint32_t index, std::int64_t bytes, Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  const LocalTask& local = program_.tasks()[index];
  if (local.message != kNoIndex) work_.set_length(local.message, bytes);
  if (--waits_for_[index] == 0) push(index, at);
}

void DeviceRuntime::count(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_sent_ += bytes;
}

void DeviceRuntime::happened() {
  const std::lock_guard lock(mutex_);
  note_progress();
}

void DeviceRuntime::attempt(std::uint32_t index, const std::function<void()>& work) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
  }
  try {
    as_task(index, work);
  } catch (...) {
    fail(std::current_exception());
  }
}

void DeviceRuntime::failed(const transport::PeerError& error) {
  fail(std::make_exception_ptr(named(error)));
}

}  // namespace hipress::runtime
