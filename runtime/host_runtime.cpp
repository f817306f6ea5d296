#include "runtime/host_runtime.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "io/thread_variables.hpp"
#include "runtime/scheduling.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;

/// Number of polls of a waiting thread per timeout.
constexpr int kLooks = 20;

/// Value in waits_for_: the task itself is done.
constexpr std::uint32_t kDone = UINT32_MAX;

}  // namespace

HostRuntime::HostRuntime(transport::Endpoint& endpoint, const Program& program, Parts parts,
                         HostWork work, double timeout_s)
    : FallibleRuntime(endpoint, program, timeout_s),
      work_(std::move(work)),
      intervals_(program.tasks().size()),
      part_of_(std::move(parts.of)),
      waits_at_first_(program.tasks().size()),
      transfer_of_(program.tasks().size()),
      waits_for_(program.tasks().size(), kDone),
      parts_(parts.count) {
  assign_parts();
  codec_.ready.reserve(program.tasks().size());
  communication_.ready.reserve(program.tasks().size());
  collective_.ready.reserve(program_.collectives().size());
  if (!program_.collectives().empty()) library_ = endpoint_.collective();
  try {
    codec_.thread = io::start_thread([this] { serve(codec_); });
    communication_.thread = io::start_thread([this] { serve(communication_); });
    if (library_) collective_.thread = io::start_thread([this] { serve(collective_); });
  } catch (...) {
    stop();  // the destructor does not run
    throw;
  }
}

HostRuntime::~HostRuntime() { stop(); }

void HostRuntime::prepare_exchanges() {
  for (Part& part : parts_) prepare_messages(part);
}

void HostRuntime::stop() noexcept {
  bool reducing = false;  // an all-reduce still runs, which means that the iteration has failed
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    codec_.wake.notify_all();
    communication_.wake.notify_all();
    collective_.wake.notify_all();
    reducing = collective_.running;
  }
  if (reducing) library_->interrupt();
  for (Queue* const queue : {&codec_, &communication_, &collective_}) {
    if (queue->thread.joinable()) queue->thread.join();
  }
  for (Part& part : parts_) part.exchange.reset();
}

void HostRuntime::assign_parts() {
  const std::span<const LocalTask> tasks = program_.tasks();
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    waits_at_first_[index] = tasks[index].waits_for;
    if (part_of_[index] != kNoIndex) parts_[part_of_[index]].tasks.push_back(index);
  }
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    for (const std::uint32_t next : program_.successors(tasks[index])) {
      if (part_of_[next] != part_of_[index]) --waits_at_first_[next];
    }
    for (const std::uint32_t member : program_.members(tasks[index])) {
      if (part_of_[member] == part_of_[index]) continue;
      throw std::invalid_argument("task graph: " + program_.describe(tasks[member]) +
                                  " is batched with a task of another unit, which does not begin "
                                  "with it; plan without batches");
    }
  }
}

void HostRuntime::prepare_messages(Part& part) {
  std::vector<std::uint32_t> sends, receives;
  for (const std::uint32_t index : part.tasks) {
    const Kind kind = program_.tasks()[index].task.kind;
    if (kind == Kind::kSend) {
      transfer_of_[index] = static_cast<std::uint32_t>(sends.size());
      sends.push_back(index);
    } else if (kind == Kind::kRecv) {
      receives.push_back(index);
    }
  }
  part.exchange = prepare_exchange(
      endpoint_, program_, sends, receives,
      [this](std::uint32_t index) { return work_.payload(program_.tasks()[index]); },
      {.arrived = [this](std::uint32_t tag, std::int64_t bytes,
                         Clock::time_point at) { arrived(tag, bytes, at); },
       .failed =
           [this](const transport::PeerError& e) { fail(std::make_exception_ptr(named(e))); }});
}

void HostRuntime::reset(Part& part, const HostWork::When& when) {
  part.when = when;
  part.remaining = static_cast<std::uint32_t>(part.tasks.size());
  for (const std::uint32_t index : part.tasks) waits_for_[index] = waits_at_first_[index];
}

void HostRuntime::start(const Part& part, Clock::time_point at) {
  for (const std::uint32_t index : part.tasks) {
    const casync::Task& task = program_.tasks()[index].task;
    if (is_computation(task)) {
      // computed() completes the computation of a stepped program.
      if (task.kind != Kind::kForward || program_.is_stepped()) continue;
      intervals_[index].start = at;
      complete(index, at);
    } else if (waits_at_first_[index] == 0) {
      release(index, at);
    }
  }
}

void HostRuntime::backward_done(std::uint32_t gradient, Clock::time_point at) {
  const std::uint32_t index = program_.backward_of(gradient);
  intervals_[index].start = at;
  complete(index, at);
}

Clock::time_point HostRuntime::await_computation(std::unique_lock<std::mutex>& lock,
                                                 std::uint32_t index) {
  const Clock::time_point called = Clock::now();
  const auto over = [&] { return waits_for_[index] == 0 || failure_; };
  while (!changed_.wait_for(lock, look(), over)) {
    end_if_stalled_since(lock, std::max(called, progress_));
  }
  rethrow_failure();
  return waits_at_first_[index] == 0 ? Clock::time_point::min() : intervals_[index].start;
}

void HostRuntime::computed(std::uint32_t index, const Interval& when) {
  intervals_[index].start = when.start;
  complete(index, when.end);
}

Clock::duration HostRuntime::look() const {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(timeout_s_ / kLooks));
}

void HostRuntime::end_if_stalled_since(std::unique_lock<std::mutex>& lock,
                                       Clock::time_point since) {
  end_if_stalled(
      lock, Clock::now() - since,
      [this](std::uint32_t index) { return waits_for_[index] != kDone; },
      codec_.running ? codec_.task : kNoIndex);
}

void HostRuntime::serve(Queue& queue) {
  Clock::time_point turn_ends;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!stopping_ && (queue.ready.empty() || failure_)) {
      queue.sleeping = true;
      queue.wake.wait(lock);
      queue.sleeping = false;
    }
    if (stopping_) return;
    const std::uint32_t index = queue.ready.pop();
    queue.running = true;
    queue.task = index;
    lock.unlock();
    try {
      run(index);
      const Clock::time_point end = Clock::now();
      lock.lock();
      complete(index, end);
      if (end > turn_ends) {
        turn_ends = end + kTurn;
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      }
    } catch (...) {
      if (lock.owns_lock()) lock.unlock();
      fail(std::current_exception());
      lock.lock();
    }
    queue.running = false;
  }
}

void HostRuntime::run(std::uint32_t index) {
  const LocalTask& local = program_.tasks()[index];
  // Yield only in tasks without locks: gloo's threads may spin while they wait for one.
  const bool codes = local.task.kind != Kind::kSend && local.task.kind != Kind::kAllReduce;
  const ScopedYield scoped_yield(codes && local.task.amount >= casync::kLongElements);
  intervals_[index].start = Clock::now();
  as_task(index, [&] { run_body(local, index); });
}

void HostRuntime::run_body(const LocalTask& local, std::uint32_t index) {
  switch (local.task.kind) {
    case Kind::kSend:
      return send(local, index);
    case Kind::kAllReduce:
      reducing_ = index;
      work_.all_reduce(local, *library_);
      reducing_ = kNoIndex;
      return count(work_.bytes_sent(local));
    default:
      return work_.run(index, parts_[part_of_[index]].when);
  }
}

void HostRuntime::count(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_sent_ += bytes;
}

void HostRuntime::send(const LocalTask& local, std::uint32_t index) {
  const std::int64_t bytes = work_.bytes_to_send(local);
  count(bytes);
  parts_[part_of_[index]].exchange->send(transfer_of_[index], bytes);
}

void HostRuntime::push(Queue& queue, std::uint32_t index, Clock::time_point ready) {
  queue.ready.push(index, program_.tasks()[index].order, ready);
  if (queue.sleeping) queue.wake.notify_one();
}

void HostRuntime::run_collective(std::uint32_t index, Clock::time_point ready) {
  push(collective_, index, ready);
}

void HostRuntime::complete(std::uint32_t index, Clock::time_point at) {
  const LocalTask& local = program_.tasks()[index];
  intervals_[index].end = at;
  progress_ = std::max(progress_, at);
  waits_for_[index] = kDone;
  const std::uint32_t number = part_of_[index];
  for (const std::uint32_t next : program_.successors(local)) {
    if (part_of_[next] == number && --waits_for_[next] == 0) release(next, at);
  }
  if (--parts_[number].remaining > 0) return;
  ended(number);
  changed_.notify_all();
}

void HostRuntime::release(std::uint32_t index, Clock::time_point at) {
  const casync::Task& task = program_.tasks()[index].task;
  if (is_instant(task)) {
    intervals_[index].start = at;
    return complete(index, at);
  }
  if (is_computation(task)) {  // await_computation() waits for this
    intervals_[index].start = at;
    return changed_.notify_all();
  }
  switch (task.kind) {
    case Kind::kSend:
      return push(communication_, index, at);
    case Kind::kAllReduce:
      return collective_ready(index, at);
    case Kind::kRecv:  // all predecessors are done, so its message has arrived
      intervals_[index].start = at;
      return complete(index, at);
    default:
      return push(codec_, index, at);
  }
}

void HostRuntime::arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at) {
  const std::uint32_t index = program_.index_of(tag);
  const std::lock_guard lock(mutex_);
  const LocalTask& local = program_.tasks()[index];
  if (local.message != kNoIndex) work_.set_length(local.message, bytes);
  if (--waits_for_[index] == 0) release(index, at);
}

}  // namespace hipress::runtime
