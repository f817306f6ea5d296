#include "runtime/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "runtime/operations.hpp"
#include "runtime/scheduling.hpp"
#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;

constexpr std::align_val_t kArenaAlignment{64};

/// How often within the timeout wait() looks whether something has happened.
constexpr int kLooks = 20;

/// In waits_for_: the task itself is done.
constexpr std::uint32_t kDone = UINT32_MAX;

/// What a unit's residuals are kept under: a gradient's name, so that they outlive a change of
/// plan; a bulk group's are those of one concatenation, so they outlive all but another grouping.
std::string state_name(const casync::Unit& unit, const models::Model& model) {
  if (unit.members.size() == 1) return unit.name;
  std::string names;
  for (const std::uint32_t member : unit.members) {
    const std::string& name = model.gradients[member].name;
    names += fmt::format("{}:{}", name.size(), name);
  }
  return "bulk " + io::fingerprint(names);
}

}  // namespace

void Runtime::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, kArenaAlignment);
}

Runtime::Runtime(transport::Endpoint& endpoint, const Program& program,
                 std::vector<std::span<float>> units, kernels::StateStore& states,
                 const RuntimeOptions& options)
    : endpoint_(endpoint),
      program_(program),
      units_(std::move(units)),
      options_(options),
      arena_(static_cast<std::byte*>(
          ::operator new[](static_cast<std::size_t>(program.arena_bytes()), kArenaAlignment))),
      message_bytes_(program.messages().size()),
      intervals_(program.tasks().size()),
      waits_for_(program.tasks().size()) {
  prepare_states(states);
  codec_.ready.reserve(program.tasks().size());
  communication_.ready.reserve(program.tasks().size());
  collective_.ready.reserve(program_.collectives().size());
  prepare_messages();
  if (!program_.collectives().empty()) library_ = endpoint_.collective();
  try {
    codec_.thread = std::thread([this] { serve(codec_); });
    communication_.thread = std::thread([this] { serve(communication_); });
    if (library_) collective_.thread = std::thread([this] { serve(collective_); });
  } catch (...) {
    stop();  // no destructor does it
    throw;
  }
}

Runtime::~Runtime() { stop(); }

void Runtime::stop() noexcept {
  bool reducing = false;  // of an iteration that has failed
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
}

void Runtime::prepare_states(kernels::StateStore& states) {
  states_.resize(program_.tasks().size());
  for (std::uint32_t index = 0; index < states_.size(); ++index) {
    const LocalTask& local = program_.tasks()[index];
    if (local.task.kind != Kind::kEncode) continue;
    const auto algorithm = static_cast<std::size_t>(local.task.algorithm);
    const kernels::Codec& codec = *program_.plan().codecs[algorithm];
    if (state_arrays(codec) == 0) continue;
    const casync::Unit& unit = program_.layout().units[local.task.gradient];
    states_[index] = states.slice_of(codec, state_name(unit, program_.model()),
                                     static_cast<std::uint32_t>(local.task.role), unit.elements,
                                     local.slice.begin, local.slice.elements);
  }
}

void Runtime::prepare_messages() {
  exchange_ = prepare_exchange(
      endpoint_, program_, [this](std::uint32_t index) { return payload(program_.tasks()[index]); },
      {.arrived = [this](std::uint32_t tag, std::int64_t bytes,
                         Clock::time_point at) { arrived(tag, bytes, at); },
       .failed =
           [this](const transport::PeerError& e) { fail(std::make_exception_ptr(named(e))); }});
}

void Runtime::begin(std::uint64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    rethrow_failure();
    iteration_ = iteration;
    bytes_sent_ = 0;
    remaining_ = static_cast<std::uint32_t>(program_.tasks().size());
    for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
      waits_for_[index] = program_.tasks()[index].waits_for;
    }
  }
  exchange_->begin(iteration);
}

void Runtime::start(Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
    const LocalTask& local = program_.tasks()[index];
    if (local.task.kind == Kind::kForward) {
      intervals_[index].start = at;
      complete(index, at);
    } else if (local.waits_for == 0 && local.task.kind != Kind::kBackward) {
      release(index, at);
    }
  }
}

void Runtime::gradient_ready(std::uint32_t gradient, Clock::time_point at) {
  const std::uint32_t index = program_.backward_of(gradient);
  const std::lock_guard lock(mutex_);
  intervals_[index].start = at;
  complete(index, at);
}

void Runtime::wait_until(Clock::time_point at) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, at, [this] { return failure_ != nullptr; });
  rethrow_failure();
}

void Runtime::wait() {
  {
    std::unique_lock lock(mutex_);
    const Clock::time_point called = Clock::now();
    const std::chrono::duration<double> look(options_.timeout_s / kLooks);
    while (!changed_.wait_for(lock, look, [this] { return remaining_ == 0 || failure_; })) {
      end_if_stalled(lock, std::max(called, progress_));
    }
    rethrow_failure();
  }
  try {
    exchange_->finish();
  } catch (const transport::PeerError& error) {
    throw named(error);
  }
}

void Runtime::end_if_stalled(std::unique_lock<std::mutex>& lock, Clock::time_point since) {
  const auto quiet = Clock::now() - since;
  if (quiet < std::chrono::duration<double>(options_.timeout_s)) return;
  const Stall stall = find_stall(
      program_, options_.timeout_s,
      [this](std::uint32_t index) { return waits_for_[index] != kDone; },
      codec_.running ? codec_.task : kNone);
  if (quiet < stall.patience) return;
  lock.unlock();
  // Before unwinding destroys the exchange, which would tell all that this rank gave up.
  endpoint_.abort(stall.error.culprit, stall.error.what());
  lock.lock();
  changed_.wait_for(lock, kToHear, [this] { return failure_ != nullptr; });
  if (!failure_) failure_ = std::make_exception_ptr(stall.error);
}

void Runtime::serve(Queue& queue) {
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

void Runtime::run(std::uint32_t index) {
  const LocalTask& local = program_.tasks()[index];
  // Only what holds nothing that those who move bytes wait for, busily as gloo does.
  const bool codes = local.task.kind != Kind::kSend && local.task.kind != Kind::kAllReduce;
  const ScopedYield scoped_yield(codes && local.task.amount >= casync::kLongElements);
  intervals_[index].start = Clock::now();
  try {
    std::vector<std::uint32_t> batch{index};
    const auto members = program_.members(local);
    batch.insert(batch.end(), members.begin(), members.end());
    switch (local.task.kind) {
      case Kind::kEncode:
        return encode(batch);
      case Kind::kDecode:
        return decode(batch);
      case Kind::kMerge:
        return merge(batch);
      case Kind::kAllReduce:
        reducing_ = index;
        all_reduce(local);
        reducing_ = kNone;
        return;
      default:
        return send(local);
    }
  } catch (const transport::PeerError& error) {
    throw named(error);
  } catch (const std::bad_alloc&) {
    throw;  // the rank's, whatever it did
  } catch (const std::exception& error) {
    throw io::RunError(fmt::format("{}: {}", program_.describe(local), error.what()));
  }
}

Operands Runtime::operands(std::uint32_t index) const {
  const LocalTask& local = program_.tasks()[index];
  if (local.task.kind == Kind::kEncode) {
    return {slice(local), buffer(local.message), states_[index],
            draw_key(local.task, local.slice.begin, options_.seed, iteration_)};
  }
  const auto used = static_cast<std::size_t>(message_bytes_[local.message]);
  return {slice(local), buffer(local.message).first(used), {}, {}};
}

void Runtime::encode(std::span<const std::uint32_t> batch) {
  std::vector<Work> works;
  for (const std::uint32_t index : batch) {
    works.push_back({&program_.tasks()[index].task, operands(index)});
  }
  std::vector<std::int64_t> bytes(batch.size());
  const auto algorithm = static_cast<std::size_t>(works.front().task->algorithm);
  runtime::encode(works, program_.graph().divisor, *program_.plan().codecs[algorithm], bytes);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    message_bytes_[program_.tasks()[batch[i]].message] = bytes[i];
  }
}

void Runtime::decode(std::span<const std::uint32_t> batch) {
  std::vector<Work> works;
  for (const std::uint32_t index : batch) {
    works.push_back({&program_.tasks()[index].task, operands(index)});
  }
  const auto algorithm = static_cast<std::size_t>(works.front().task->algorithm);
  runtime::decode(works, program_.graph().divisor, *program_.plan().codecs[algorithm]);
}

void Runtime::merge(std::span<const std::uint32_t> batch) {
  for (const std::uint32_t index : batch) {
    runtime::merge(program_.tasks()[index].task, program_.graph().divisor, operands(index));
  }
}

void Runtime::all_reduce(const LocalTask& local) {
  const std::span<std::byte> message =
      local.message == kNone ? std::span<std::byte>() : buffer(local.message);
  runtime::all_reduce(local.task, program_.graph().divisor, program_.cast_of(local), *library_,
                       {slice(local), message, {}, {}});
  const std::lock_guard lock(mutex_);
  bytes_sent_ += casync::bytes_sent(program_.graph(), local.task);
}

void Runtime::send(const LocalTask& local) {
  const std::int64_t bytes =
      local.message == kNone ? local.task.amount : message_bytes_[local.message];
  {
    const std::lock_guard lock(mutex_);
    bytes_sent_ += bytes;
  }
  exchange_->send(local.transfer, bytes);
}

std::span<float> Runtime::slice(const LocalTask& local) const {
  return units_[local.task.gradient].subspan(static_cast<std::size_t>(local.slice.begin),
                                             static_cast<std::size_t>(local.slice.elements));
}

std::span<std::byte> Runtime::buffer(std::uint32_t message) const {
  const MessageBuffer& place = program_.messages()[message];
  return {arena_.get() + place.offset, static_cast<std::size_t>(place.capacity)};
}

std::span<std::byte> Runtime::payload(const LocalTask& local) const {
  if (local.message != kNone) return buffer(local.message);
  return std::as_writable_bytes(slice(local));
}

void Runtime::push(Queue& queue, std::uint32_t index, Clock::time_point ready) {
  queue.ready.push(index, program_.tasks()[index].order, ready);
  if (queue.sleeping) queue.wake.notify_one();
}

void Runtime::complete(std::uint32_t index, Clock::time_point at) {
  const LocalTask& local = program_.tasks()[index];
  intervals_[index].end = at;
  progress_ = std::max(progress_, at);
  waits_for_[index] = kDone;
  for (const std::uint32_t next : program_.successors(local)) {
    if (--waits_for_[next] == 0) release(next, at);
  }
  if (--remaining_ == 0) changed_.notify_all();
}

void Runtime::release(std::uint32_t index, Clock::time_point at) {
  const casync::Task& task = program_.tasks()[index].task;
  if (is_instant(task)) {
    intervals_[index].start = at;
    return complete(index, at);
  }
  switch (task.kind) {
    case Kind::kSend:
      return push(communication_, index, at);
    case Kind::kAllReduce:
      return push(collective_, index, at);
    case Kind::kRecv:  // the last it waited for is done: its message is here
      intervals_[index].start = at;
      return complete(index, at);
    default:
      return push(codec_, index, at);
  }
}

void Runtime::arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at) {
  const std::uint32_t index = program_.index_of(tag);
  const std::lock_guard lock(mutex_);
  const LocalTask& local = program_.tasks()[index];
  if (local.message != kNone) message_bytes_[local.message] = bytes;
  if (--waits_for_[index] == 0) release(index, at);
}

void Runtime::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  changed_.notify_all();
}

void Runtime::rethrow_failure() {
  if (failure_) std::rethrow_exception(failure_);
}

transport::PeerError Runtime::named(const transport::PeerError& error) const {
  if (error.awaited.empty()) {
    const std::uint32_t waiting = reducing_;
    if (waiting == kNone) return error;
    return {error.culprit, fmt::format("{}; '{}' waits for it", error.what(),
                                       program_.describe(program_.tasks()[waiting]))};
  }
  const std::uint32_t index = program_.index_of(error.awaited.front());
  return {error.culprit,
          fmt::format("{}; tag {} is '{}'", error.what(), error.awaited.front(),
                      program_.describe(program_.tasks()[index])),
          error.awaited};
}

}  // namespace hipress::runtime
