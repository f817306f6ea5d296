#include "runtime/device_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "io/error.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;
using transport::NcclOperation;

/// Between two looks at what the device and NCCL do. Shorter: the end of an iteration is noticed
/// sooner, which its measured time does not depend on; longer: fewer calls.
constexpr auto kLook = std::chrono::microseconds(50);

/// The same while only the host has something to do, and the device could but fail.
constexpr auto kSeldom = std::chrono::microseconds(100'000);

std::chrono::nanoseconds from_s(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

transport::NcclValues nccl_values(const kernels::Codec* cast) {
  using enum kernels::ValueType;
  if (cast == nullptr) return transport::NcclValues::kFloat32;
  return cast->traits().message_values == kFloat16 ? transport::NcclValues::kFloat16
                                                   : transport::NcclValues::kBfloat16;
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
      device_(device),
      options_(options),
      memory_(program, device, options.nccl ? DeviceTransport::kNccl : DeviceTransport::kPinned),
      schedule_(device, program),
      copied_(device.make_event()),
      staged_(memory_.layout().staging.size()),
      reduced_(program.tasks().size()),
      intervals_(program.tasks().size()),
      round_of_(program.tasks().size(), kNoIndex),
      waits_for_(program.tasks().size()),
      finished_(program.tasks().size()) {
  for (const casync::Algorithm& algorithm : program.plan().plan.algorithms) {
    codecs_.push_back(device.codec(algorithm.name));
  }
  prepare_lengths();
  if (options_.nccl != nullptr) {
    // Before anything is allocated, so that what NCCL takes of the device is not counted as free.
    communicator_ =
        std::make_unique<transport::NcclCommunicator>(endpoint, *options_.nccl, options_.timeout_s);
  }
  memory_.allocate();
  ready_.reserve(program.tasks().size());
  if (communicator_) {
    prepare_rounds();
  } else {
    prepare_messages();
    if (!program_.collectives().empty()) library_ = endpoint_.collective();
  }
  try {
    start_threads();
  } catch (...) {
    stop();  // no destructor does it
    throw;
  }
}

DeviceRuntime::~DeviceRuntime() { stop(); }

void DeviceRuntime::start_threads() {
  if (!communicator_) {
    sender_.thread = std::thread([this] {
      serve(sender_, [this](const LocalTask& local, std::uint32_t i) { hand_over(local, i); });
    });
  }
  if (library_) {
    reducer_.thread = std::thread([this] {
      serve(reducer_,
            [this](const LocalTask& local, std::uint32_t i) { reduce_on_host(local, i); });
    });
  }
  issuer_ = std::thread([this] { issue_loop(); });
}

void DeviceRuntime::stop() {
  bool reducing = false;  // of an iteration that has failed
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    reducing = reducer_.running;
  }
  wake_.notify_all();
  sender_.wake.notify_all();
  reducer_.wake.notify_all();
  if (reducing) library_->interrupt();
  for (std::thread* const thread : {&issuer_, &sender_.thread, &reducer_.thread}) {
    if (thread->joinable()) thread->join();
  }
  exchange_.reset();  // after the sender, which may have been sending
  if (communicator_ && (failure_ || under_way_)) communicator_->abandon();
  communicator_.reset();  // ends what would keep the device's streams waiting
  device_.drain();        // what is called from them is ours
}

void DeviceRuntime::prepare_lengths() {
  for (const MessageBuffer& message : program_.messages()) {
    message_bytes_.push_back(message.capacity);
  }
  varies_.assign(message_bytes_.size(), false);
  for (const LocalTask& local : program_.tasks()) {
    if (local.task.kind != Kind::kEncode) continue;
    const auto algorithm = static_cast<std::size_t>(local.task.algorithm);
    varies_[local.message] = codecs_[algorithm]->traits().varies;
  }
}

void DeviceRuntime::prepare_messages() {
  exchange_ = prepare_exchange(
      endpoint_, program_, program_.sends(), program_.receives(),
      [this](std::uint32_t index) { return memory_.staging(index); },
      {.arrived = [this](std::uint32_t tag, std::int64_t bytes,
                         Clock::time_point at) { arrived(tag, bytes, at); },
       .failed =
           [this](const transport::PeerError& e) { fail(std::make_exception_ptr(named(e))); }});
}

void DeviceRuntime::prepare_rounds() {
  const casync::TaskGraph& graph = program_.graph();
  for (const Round& round : derive_rounds(graph, options_.rounds)) {
    LocalRound mine;
    const auto add = [&](NcclOperation::Kind kind, casync::TaskId id) {
      const std::uint32_t index = program_.index_of(id);
      if (index == kNoIndex) return;
      const LocalTask& local = program_.tasks()[index];
      const bool sends = kind == NcclOperation::Kind::kSend;
      const std::span<std::byte> memory = memory_.payload(local);
      mine.tasks.push_back(index);
      mine.operations.push_back({.kind = kind,
                                 .peer = static_cast<int>(graph.peer(local.task)),
                                 .tag = sends ? receive_of(graph, id) : id,
                                 .memory = memory.data(),
                                 .bytes = kind == NcclOperation::Kind::kAllReduce
                                              ? static_cast<std::int64_t>(memory.size())
                                              : memory_.most_bytes(local),
                                 .values = nccl_values(program_.cast_of(local))});
    };
    for (const casync::TaskId send : round.sends) {
      add(NcclOperation::Kind::kSend, send);
      add(NcclOperation::Kind::kReceive, receive_of(graph, send));
    }
    for (const auto& reduce : round.reduces) {
      for (const casync::TaskId task : reduce) add(NcclOperation::Kind::kAllReduce, task);
    }
    if (mine.tasks.empty()) continue;
    const auto number = static_cast<std::uint32_t>(rounds_.size());
    for (const std::uint32_t index : mine.tasks) round_of_[index] = number;
    rounds_.push_back(std::move(mine));
  }
  round_waits_.resize(rounds_.size());
}

std::uint32_t DeviceRuntime::waits_at_first(const LocalTask& local) const {
  // NCCL's own order sees to it that a message is awaited where it is sent.
  const bool awaits_send = options_.nccl != nullptr && local.task.kind == Kind::kRecv;
  return local.waits_for - (awaits_send ? 1 : 0);
}

void DeviceRuntime::begin(std::uint64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    rethrow_failure();
    iteration_ = iteration;
    bytes_sent_ = 0;
    remaining_ = static_cast<std::uint32_t>(program_.tasks().size());
    for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
      waits_for_[index] = waits_at_first(program_.tasks()[index]);
    }
  }
  std::fill(finished_.begin(), finished_.end(), false);
  std::fill(staged_.begin(), staged_.end(), false);
  std::fill(reduced_.begin(), reduced_.end(), std::uint8_t{0});
  for (std::size_t round = 0; round < rounds_.size(); ++round) {
    round_waits_[round] = static_cast<std::uint32_t>(rounds_[round].tasks.size());
  }
  next_round_ = first_awaited_ = 0;
  memory_.copy_in(host_units_, Stream::kOwnCodec);
  wait_for_copies();
  set_origin();
  if (exchange_) exchange_->begin(iteration);
}

/// The device's origin in the host's time: somewhere between asking for it and seeing it done.
void DeviceRuntime::set_origin() {
  constexpr auto kClose = std::chrono::microseconds(100);
  constexpr int kTries = 20;  // where something else keeps the thread from looking
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point before = Clock::now();
    schedule_.begin();
    wait_for(schedule_.origin());
    origin_ = Clock::now();
    if (origin_ - before < kClose) return;
  }
}

void DeviceRuntime::start(Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  under_way_ = true;
  for (std::uint32_t index = 0; index < waits_for_.size(); ++index) {
    const LocalTask& local = program_.tasks()[index];
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

void DeviceRuntime::wait() {
  {
    std::unique_lock lock(mutex_);
    quiet_since_ = Clock::now();
    changed_.wait(lock, [this] { return !under_way_ || failure_; });
    quiet_since_.reset();
    rethrow_failure();
  }
  if (exchange_) finish(*exchange_);
  settle_intervals();
  memory_.copy_out(host_units_, Stream::kOwnCodec);
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
      if (quiet_since_) quiet_since_ = Clock::now();
    }
  }
}

/// There is nothing to issue: looks whether the iteration is over, or never will be.
void DeviceRuntime::idle(std::unique_lock<std::mutex>& lock) {
  const bool host_is_done = remaining_ == 0;
  lock.unlock();
  bool device_is_done = false;
  try {
    look_after_device();
    device_is_done = schedule_.done();
  } catch (...) {
    fail(std::current_exception());
  }
  lock.lock();
  if (host_is_done && device_is_done) {
    under_way_ = false;
    changed_.notify_all();
    return;
  }
  const std::chrono::nanoseconds quiet =
      quiet_since_ ? Clock::now() - *quiet_since_ : std::chrono::nanoseconds(0);
  if (quiet > from_s(options_.timeout_s) && !failure_ && !stopping_) {
    lock.unlock();
    std::uint32_t busy = kNoIndex;
    bool nccl_may_go_on = false;
    try {
      nccl_may_go_on = !end_if_nccl_stalls(quiet);
      // Nothing that is enqueued here waits for another rank, with NCCL no more: what is not done
      // holds up all by itself.
      busy = schedule_.first_undone();
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
    const auto undone = [this](std::uint32_t index) { return !finished_[index]; };
    if (!failure_ && !nccl_may_go_on) end_if_stalled(lock, quiet, undone, busy);
  }
  if (failure_ || stopping_ || !ready_.empty()) return;  // meanwhile
  if (host_is_done != (remaining_ == 0)) return;
  // Tasks, arrivals and gradients wake us up; the device, NCCL and their failures do not.
  wake_.wait_for(lock, host_is_done || communicator_ ? kLook : kSeldom);
}

bool DeviceRuntime::end_if_nccl_stalls(std::chrono::nanoseconds quiet) {
  if (!communicator_ || first_awaited_ == next_round_) return true;
  if (quiet < patience(options_.timeout_s, Blame::kSender, endpoint_.rank())) return false;
  try {
    communicator_->give_up(awaited());
  } catch (const transport::PeerError& error) {
    throw named(error);
  }
  return true;
}

void DeviceRuntime::look_after_device() {
  if (!communicator_) return;
  const std::uint32_t before = first_awaited_;
  while (first_awaited_ < next_round_ && schedule_.is_done(rounds_[first_awaited_].tasks.front())) {
    ++first_awaited_;
  }
  if (first_awaited_ != before) {
    const std::lock_guard lock(mutex_);
    if (quiet_since_) quiet_since_ = Clock::now();
  }
  try {
    communicator_->check(awaited());
  } catch (const transport::PeerError& error) {
    throw named(error);
  }
}

void DeviceRuntime::issue(std::uint32_t index) {
  const casync::Task& task = program_.tasks()[index].task;
  if (casync::is_instant(task) || casync::is_computation(task)) {
    schedule_.pass(index);
    return end_task(index);
  }
  if (is_transfer(task.kind) && communicator_) {
    --round_waits_[round_of_[index]];
    return issue_rounds();
  }
  switch (task.kind) {
    case Kind::kSend:
      return issue_pinned_send(index);
    case Kind::kRecv:
      return issue_pinned_receive(index);
    case Kind::kAllReduce:
      return issue_pinned_reduce(index);
    default:
      return issue_codec(index);
  }
}

void DeviceRuntime::issue_codec(std::uint32_t index) {
  const bool arrived =
      schedule_.follows(index, Stream::kInbound) || schedule_.follows(index, Stream::kOutbound);
  const Stream stream = arrived ? Stream::kArrivalCodec : Stream::kOwnCodec;
  std::vector<std::uint32_t> batch{index};
  const auto members = program_.members(program_.tasks()[index]);
  batch.insert(batch.end(), members.begin(), members.end());
  schedule_.enqueue(stream, {&index, 1}, [&] { run_codec(works(batch), stream); });
  end_task(index);
}

void DeviceRuntime::run_codec(std::span<const BoundTask> batch, Stream stream) {
  const casync::Task& first = *batch.front().task;
  const std::uint32_t divisor = program_.graph().divisor;
  if (first.kind == Kind::kMerge) {
    for (const BoundTask& one : batch) {
      const MergeDivisors divisors = merge_divisors(*one.task, divisor);
      device_.merge(reinterpret_cast<const float*>(one.operands.message.data()),
                    static_cast<std::int64_t>(one.operands.slice.size()), one.operands.slice.data(),
                    divisors.own, divisors.sum, stream);
    }
    return;
  }
  const kernels::Codec& codec = *codecs_[static_cast<std::size_t>(first.algorithm)];
  if (first.kind == Kind::kEncode) {
    codec.encode(encode_items(batch, divisor), device_.handle(stream));
  } else {
    const DecodeItems decoded(batch, divisor);
    codec.decode(decoded.items(), device_.handle(stream));
    if (!decoded.others().empty()) codec.decode(decoded.others(), device_.handle(stream));
  }
}

void DeviceRuntime::run_cast(const LocalTask& local, Kind kind, Stream stream) {
  if (!casync::casts(local.task)) return;
  const casync::Task task = casync::cast_of(local.task, kind);
  const BoundTask work{&task, {memory_.slice(local), memory_.payload(local), {}, {}}};
  run_codec({&work, 1}, stream);
}

void DeviceRuntime::issue_pinned_send(std::uint32_t index) {
  const std::uint32_t place = memory_.layout().staging_of[index];
  const auto then_send = [this, index] {
    const std::lock_guard lock(mutex_);
    sender_.tasks.push_back(index);
    sender_.wake.notify_one();
  };
  if (memory_.layout().staging[place].comes_in) {  // and is passed on as it lies in pinned memory
    schedule_.pass(index);
    return then_send();
  }
  schedule_.enqueue(Stream::kOutbound, {&index, 1}, [&] {
    if (!staged_[place]) {
      copy_out(index);
      staged_[place] = true;
    }
    device_.call(then_send, Stream::kOutbound);
  });
}

void DeviceRuntime::copy_out(std::uint32_t index) {
  const LocalTask& local = program_.tasks()[index];
  device_.copy(memory_.staging(index).data(), memory_.payload(local).data(),
               memory_.most_bytes(local), Stream::kOutbound);
  if (!varies(local)) return;
  device_.copy(memory_.pinned_length(local.message), memory_.length(local.message),
               sizeof(std::int64_t), Stream::kOutbound);
}

void DeviceRuntime::issue_pinned_receive(std::uint32_t index) {
  const LocalTask& local = program_.tasks()[index];
  schedule_.enqueue(Stream::kInbound, {&index, 1}, [&] {
    device_.copy(memory_.payload(local).data(), memory_.staging(index).data(), message_bytes(local),
                 Stream::kInbound);
  });
  end_task(index);
}

void DeviceRuntime::issue_pinned_reduce(std::uint32_t index) {
  const LocalTask& local = program_.tasks()[index];
  const std::span<std::byte> values = memory_.payload(local);
  const auto bytes = static_cast<std::int64_t>(values.size());
  if (reduced_[index] != 0) {
    schedule_.enqueue(Stream::kInbound, {&index, 1}, [&] {
      device_.copy(values.data(), memory_.staging(index).data(), bytes, Stream::kInbound);
      run_cast(local, Kind::kDecode, Stream::kInbound);
    });
    return end_task(index);
  }
  schedule_.enqueue(Stream::kOutbound, {&index, 1}, [&] {
    run_cast(local, Kind::kEncode, Stream::kOutbound);
    device_.copy(memory_.staging(index).data(), values.data(), bytes, Stream::kOutbound);
    device_.call(
        [this, index] {
          const std::lock_guard lock(mutex_);
          reducer_.tasks.push_back(index);
          reducer_.wake.notify_one();
        },
        Stream::kOutbound);
  });
}

void DeviceRuntime::issue_rounds() {
  while (next_round_ < rounds_.size() && round_waits_[next_round_] == 0) {
    issue_round(rounds_[next_round_++]);
  }
}

void DeviceRuntime::issue_round(const LocalRound& round) {
  constexpr Stream kStream = Stream::kOutbound;
  schedule_.enqueue(kStream, round.tasks, [&] {
    for (const std::uint32_t index : round.tasks) {
      run_cast(program_.tasks()[index], Kind::kEncode, kStream);
    }
    communicator_->issue(round.operations, device_.handle(kStream));
    for (const std::uint32_t index : round.tasks) {
      const LocalTask& local = program_.tasks()[index];
      run_cast(local, Kind::kDecode, kStream);
      if (local.task.kind != Kind::kAllReduce || casync::casts(local.task)) continue;
      const std::span<float> values = memory_.slice(local);
      device_.merge(nullptr, static_cast<std::int64_t>(values.size()), values.data(), 1,
                    static_cast<float>(program_.graph().divisor), kStream);
    }
  });
  std::int64_t sent = 0;
  for (const std::uint32_t index : round.tasks) {
    const casync::Task& task = program_.tasks()[index].task;
    if (task.kind != Kind::kRecv) sent += casync::bytes_sent(program_.graph(), task);
  }
  {
    const std::lock_guard lock(mutex_);
    bytes_sent_ += sent;
  }
  for (const std::uint32_t index : round.tasks) end_task(index);
}

// ------------------------------------------------------------------------- the host's part

void DeviceRuntime::serve(Helper& helper,
                          const std::function<void(const LocalTask&, std::uint32_t)>& work) {
  std::unique_lock lock(mutex_);
  for (;;) {
    helper.wake.wait(lock, [&] { return stopping_ || (!helper.tasks.empty() && !failure_); });
    if (stopping_) return;
    const std::uint32_t index = helper.tasks.front();
    helper.tasks.pop_front();
    helper.running = true;
    lock.unlock();
    const LocalTask& local = program_.tasks()[index];
    try {
      as_task(index, [&] { work(local, index); });
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
    helper.running = false;
  }
}

void DeviceRuntime::hand_over(const LocalTask& local, std::uint32_t index) {
  const std::int64_t bytes = bytes_to_send(local, index);
  intervals_[index].start = Clock::now();
  exchange_->send(local.transfer, bytes);
  const Clock::time_point end = Clock::now();
  intervals_[index].end = end;
  const std::lock_guard lock(mutex_);
  bytes_sent_ += bytes;
  finished(index, end);
}

std::int64_t DeviceRuntime::bytes_to_send(const LocalTask& local, std::uint32_t index) const {
  const Staging& staging = memory_.layout().staging[memory_.layout().staging_of[index]];
  if (staging.comes_in || !varies(local)) return message_bytes(local);
  const std::int64_t bytes = *memory_.pinned_length(local.message),
                     most = memory_.most_bytes(local);
  if (bytes >= 0 && bytes <= most) return bytes;
  throw io::RunError(fmt::format(
      "the GPU encoded a message of {} bytes where at most {} are possible", bytes, most));
}

void DeviceRuntime::reduce_on_host(const LocalTask& local, std::uint32_t index) {
  reducing_ = index;
  const std::span<std::byte> bytes = memory_.staging(index);
  if (casync::casts(local.task)) {  // on the device
    library_->all_reduce(bytes, addition(program_.cast_of(local)));
  } else {
    auto* const values = reinterpret_cast<float*>(bytes.data());
    const auto elements = static_cast<std::size_t>(local.slice.elements);
    all_reduce(local.task, program_.graph().divisor, nullptr, *library_,
               {{values, elements}, {}, {}, {}});
  }
  reducing_ = kNoIndex;
  const std::lock_guard lock(mutex_);
  reduced_[index] = 1;
  bytes_sent_ += casync::bytes_sent(program_.graph(), local.task);
  push(index, Clock::now());
}

// ---------------------------------------------------------------------------------- places

std::vector<BoundTask> DeviceRuntime::works(std::span<const std::uint32_t> batch) const {
  std::vector<BoundTask> all;
  for (const std::uint32_t index : batch) {
    all.push_back({&program_.tasks()[index].task, operands(index)});
  }
  return all;
}

Operands DeviceRuntime::operands(std::uint32_t index) const {
  const LocalTask& local = program_.tasks()[index];
  if (casync::gathers(local.task)) {
    Operands operands{.slice = memory_.slice(local), .message = {}, .state = {}, .draws = {}};
    for (const std::uint32_t message : program_.gathered(local)) {
      operands.gathered.push_back(used(message));
    }
    return operands;
  }
  if (local.task.kind != Kind::kEncode) {
    return {memory_.slice(local), used(local.message), {}, {}};
  }
  return {.slice = memory_.slice(local),
          .message = memory_.buffer(local.message),
          .state = memory_.state(index),
          .draws = draw_key(local.task, local.slice.begin, options_.seed, iteration_),
          .length = varies(local) ? memory_.length(local.message) : nullptr};
}

std::span<std::byte> DeviceRuntime::used(std::uint32_t message) const {
  return memory_.buffer(message).first(static_cast<std::size_t>(message_bytes_[message]));
}

std::int64_t DeviceRuntime::message_bytes(const LocalTask& local) const {
  return local.message == kNoIndex ? memory_.most_bytes(local) : message_bytes_[local.message];
}

bool DeviceRuntime::varies(const LocalTask& local) const {
  return local.message != kNoIndex && varies_[local.message];
}

void DeviceRuntime::wait_for_copies() {
  device_.record(copied_, Stream::kOwnCodec);
  wait_for(copied_);
}

void DeviceRuntime::wait_for(Event event) {
  const auto deadline = Clock::now() + from_s(options_.timeout_s);
  while (!device_.done(event)) {
    if (Clock::now() > deadline) {
      throw io::RunError(fmt::format("the GPU of rank {} copies gradients for {} s already",
                                     program_.node(), options_.timeout_s));
    }
    std::this_thread::yield();
  }
}

void DeviceRuntime::settle_intervals() {
  for (std::uint32_t index = 0; index < intervals_.size(); ++index) {
    const StreamSchedule::Times times = schedule_.times(index);
    if (!times.timed) continue;
    const Kind kind = program_.tasks()[index].task.kind;
    Interval& interval = intervals_[index];
    const bool by_host = kind == Kind::kSend && !communicator_;
    const bool in_halves = kind == Kind::kAllReduce && !communicator_;
    if (!in_halves) interval.start = origin_ + from_s(times.start_s);
    if (!by_host) interval.end = origin_ + from_s(times.end_s);
    if (kind == Kind::kRecv) interval.start = interval.end;   // it marks the arrival
    interval.start = std::min(interval.start, interval.end);  // of two clocks
  }
}

// ----------------------------------------------------------------------------------- state

void DeviceRuntime::push(std::uint32_t index, Clock::time_point ready) {
  if (reduced_[index] == 0) intervals_[index] = {ready, ready};
  ready_.push(index, program_.tasks()[index].order, ready);
  wake_.notify_one();
}

void DeviceRuntime::end_task(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  finished(index, Clock::now());
}

void DeviceRuntime::finished(std::uint32_t index, Clock::time_point at) {
  finished_[index] = true;
  --remaining_;
  for (const std::uint32_t next : program_.successors(program_.tasks()[index])) {
    if (--waits_for_[next] == 0) push(next, at);
  }
  if (quiet_since_) quiet_since_ = Clock::now();
  if (remaining_ == 0) wake_.notify_one();
}

void DeviceRuntime::arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at) {
  const std::uint32_t index = program_.index_of(tag);
  const std::lock_guard lock(mutex_);
  const LocalTask& local = program_.tasks()[index];
  if (local.message != kNoIndex) message_bytes_[local.message] = bytes;
  if (--waits_for_[index] == 0) push(index, at);
}

std::span<const NcclOperation> DeviceRuntime::awaited() const {
  if (first_awaited_ >= rounds_.size()) return {};
  return rounds_[first_awaited_].operations;
}

std::uint32_t DeviceRuntime::waiting() const {
  if (!communicator_) return reducing_;
  return first_awaited_ < rounds_.size() ? rounds_[first_awaited_].tasks.front() : kNoIndex;
}

}  // namespace hipress::runtime
