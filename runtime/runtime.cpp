#include "runtime/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "runtime/operations.hpp"
#include "runtime/scheduling.hpp"

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

std::int64_t bytes_of(std::span<const float> values) {
  return static_cast<std::int64_t>(values.size_bytes());
}

}  // namespace

void Runtime::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, kArenaAlignment);
}

Runtime::Runtime(transport::Endpoint& endpoint, const Program& program,
                 std::vector<std::span<float>> units, kernels::StateStore& states,
                 const RuntimeOptions& options)
    : FallibleRuntime(endpoint, program, options.timeout_s),
      units_(std::move(units)),
      options_(options),
      arena_(static_cast<std::byte*>(
          ::operator new[](static_cast<std::size_t>(program.arena_bytes()), kArenaAlignment))),
      message_bytes_(program.messages().size()),
      intervals_(program.tasks().size()),
      part_of_(program.tasks().size(), kNoIndex),
      waits_at_first_(program.tasks().size()),
      transfer_of_(program.tasks().size()),
      waits_for_(program.tasks().size(), kDone) {
  assign_parts();
  prepare_states(states);
  prepare_stages(states);
  codec_.ready.reserve(program.tasks().size());
  communication_.ready.reserve(program.tasks().size());
  collective_.ready.reserve(program_.collectives().size());
  for (Part& part : parts_) prepare_messages(part);
  turns_.ready.resize(program_.collectives().size());
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
  undo_of_.assign(states_.size(), kNoIndex);
  for (std::uint32_t index = 0; index < states_.size(); ++index) {
    const LocalTask& local = program_.tasks()[index];
    if (local.task.kind != Kind::kEncode || casync::is_staged(local.task)) continue;
    const auto algorithm = static_cast<std::size_t>(local.task.algorithm);
    const kernels::Codec& codec = *program_.plan().codecs[algorithm];
    if (state_arrays(codec) == 0) continue;
    const casync::Unit& unit = program_.layout().units[local.task.gradient];
    states_[index] = states.slice_of(codec, state_name(unit, program_.model()),
                                     static_cast<std::uint32_t>(local.task.role), unit.elements,
                                     local.slice.begin, local.slice.elements);
    if (!options_.keeps_undo) continue;
    undo_of_[index] = undo_.add({.unit = local.task.gradient,
                                 .first = local.slice.begin,
                                 .elements = local.slice.elements,
                                 .codec = &codec,
                                 .state = states_[index],
                                 .arrays = state_arrays(codec),
                                 .length = local.slice.elements});
  }
}

void Runtime::prepare_stages(kernels::StateStore& states) {
  const casync::Layout& layout = program_.layout();
  const auto length = [&](std::uint32_t factor) {  // no two share a cache line
    return (static_cast<std::size_t>(layout.units[factor].elements) + 15) / 16 * 16;
  };
  const auto end = static_cast<std::uint32_t>(layout.units.size());
  std::size_t values = 0;
  for (std::uint32_t factor = layout.first_factor; factor < end; ++factor) values += length(factor);
  factor_memory_.resize(values);
  units_.resize(layout.units.size());
  float* next = factor_memory_.data();
  for (std::uint32_t factor = layout.first_factor; factor < end; ++factor) {
    units_[factor] = {next, static_cast<std::size_t>(layout.units[factor].elements)};
    next += length(factor);
  }
  const auto state_of = [&](const std::string& name, std::int64_t elements) {
    return states.get(name, static_cast<std::uint32_t>(casync::Role::kWorker), elements, 1);
  };
  for (const std::uint32_t unit : layout.order) {
    const casync::Unit& what = layout.units[unit];
    if (!what.is_staged()) continue;
    std::vector<std::span<float>> factors(units_.begin() + what.first_factor,
                                          units_.begin() + what.first_factor + what.stages);
    const StagedUnit& staged =
        staged_
            .try_emplace(unit, layout, unit, program_.model(), program_.plan(), units_[unit],
                         std::move(factors), state_of)
            .first->second;
    if (!options_.keeps_undo) continue;
    for (Undo::Encoder& encoder : staged.encoders()) {
      encoder.unit = unit;
      undo_of_staged_[unit].push_back(undo_.add(encoder));
    }
  }
}

std::vector<Factor> Runtime::factors() const {
  std::vector<Factor> factors;
  for (const auto& [unit, staged] : staged_) staged.collect_factors(factors);
  return factors;
}

std::uint32_t Runtime::part_number(const LocalTask& local) const {
  if (options_.pace == Pace::kIteration) return 0;
  if (local.task.kind == Kind::kForward) return kNoIndex;
  const bool of_gradient = local.task.kind == Kind::kBackward;
  const casync::Layout& layout = program_.layout();
  return of_gradient ? layout.unit_of[local.task.gradient] : layout.owner(local.task.gradient);
}

void Runtime::assign_parts() {
  const std::span<const LocalTask> tasks = program_.tasks();
  parts_.resize(options_.pace == Pace::kIteration ? 1 : program_.layout().units.size());
  for (std::uint32_t index = 0; index < tasks.size(); ++index) {
    part_of_[index] = part_number(tasks[index]);
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

void Runtime::prepare_messages(Part& part) {
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
      [this](std::uint32_t index) { return payload(program_.tasks()[index]); },
      {.arrived = [this](std::uint32_t tag, std::int64_t bytes,
                         Clock::time_point at) { arrived(tag, bytes, at); },
       .failed =
           [this](const transport::PeerError& e) { fail(std::make_exception_ptr(named(e))); }});
}

void Runtime::reset(Part& part, std::uint64_t iteration, std::uint64_t step) {
  part.iteration = iteration;
  part.step = step;
  part.remaining = static_cast<std::uint32_t>(part.tasks.size());
  for (const std::uint32_t index : part.tasks) waits_for_[index] = waits_at_first_[index];
}

void Runtime::begin(std::uint64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    rethrow_failure();
    bytes_sent_ = 0;
    reset(parts_.front(), iteration, iteration);
  }
  parts_.front().exchange->begin(iteration);
}

void Runtime::start(Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  start(parts_.front(), at);
}

void Runtime::start(const Part& part, Clock::time_point at) {
  for (const std::uint32_t index : part.tasks) {
    const Kind kind = program_.tasks()[index].task.kind;
    if (kind == Kind::kForward) {
      intervals_[index].start = at;
      complete(index, at);
    } else if (waits_at_first_[index] == 0 && kind != Kind::kBackward) {
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

void Runtime::wait() {
  {
    std::unique_lock lock(mutex_);
    const Clock::time_point called = Clock::now();
    const std::chrono::duration<double> look(options_.timeout_s / kLooks);
    const auto over = [this] { return parts_.front().remaining == 0 || failure_; };
    while (!changed_.wait_for(lock, look, over)) {
      end_if_stalled_since(lock, std::max(called, progress_));
    }
    rethrow_failure();
  }
  finish(*parts_.front().exchange);
}

void Runtime::begin_unit(std::uint32_t unit, std::uint64_t iteration, std::uint64_t step) {
  Part& part = parts_[unit];
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    ++under_way_;
    progress_ = Clock::now();
    reset(part, iteration, step);
  }
  try {
    part.exchange->begin(iteration);
  } catch (const transport::PeerError& error) {
    return fail(std::make_exception_ptr(named(error)));
  } catch (...) {
    return fail(std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  const Clock::time_point at = Clock::now();
  start(part, at);
  for (const std::uint32_t gradient : program_.layout().units[unit].members) {
    const std::uint32_t index = program_.backward_of(gradient);
    intervals_[index].start = at;
    complete(index, at);
  }
}

std::uint32_t Runtime::wait_for_unit() {
  std::uint32_t unit = kNoIndex;
  {
    std::unique_lock lock(mutex_);
    const std::chrono::duration<double> look(options_.timeout_s / kLooks);
    const auto over = [this] { return !ended_.empty() || failure_ || waiting_stops_; };
    while (!changed_.wait_for(lock, look, over)) {
      if (under_way_ > 0) end_if_stalled_since(lock, progress_);
    }
    rethrow_failure();
    if (ended_.empty()) return kNoIndex;
    unit = ended_.front();
    ended_.pop_front();
  }
  transport::Exchange& exchange = *parts_[unit].exchange;
  finish(exchange);
  // Before its gradients are known: what says that this rank has begun would wait behind longer
  // messages of other units. What comes early goes into buffers, as results need this rank's part.
  exchange.post();
  const std::lock_guard lock(mutex_);
  --under_way_;
  return unit;
}

void Runtime::stop_waiting() {
  const std::lock_guard lock(mutex_);
  waiting_stops_ = true;
  changed_.notify_all();
}

void Runtime::end_if_stalled_since(std::unique_lock<std::mutex>& lock, Clock::time_point since) {
  end_if_stalled(
      lock, Clock::now() - since,
      [this](std::uint32_t index) { return waits_for_[index] != kDone; },
      codec_.running ? codec_.task : kNoIndex);
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
  as_task(index, [&] { run_body(local, index); });
}

void Runtime::run_body(const LocalTask& local, std::uint32_t index) {
  if (casync::is_staged(local.task)) {
    return encode_or_decode(local, parts_[part_of_[index]]);
  }
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
      reducing_ = kNoIndex;
      return;
    default:
      return send(local, index);
  }
}

Operands Runtime::operands(std::uint32_t index) const {
  const LocalTask& local = program_.tasks()[index];
  if (local.task.kind == Kind::kEncode) {
    return {slice(local), buffer(local.message), states_[index],
            draw_key(local.task, local.slice.begin, options_.seed, parts_[part_of_[index]].step)};
  }
  const auto used = [this](std::uint32_t message) {
    return buffer(message).first(static_cast<std::size_t>(message_bytes_[message]));
  };
  if (casync::gathers(local.task)) {
    Operands operands{.slice = used_slice(local), .message = {}, .state = {}, .draws = {}};
    for (const std::uint32_t message : program_.gathered(local)) {
      operands.gathered.push_back(used(message));
    }
    return operands;
  }
  return {used_slice(local), used(local.message), {}, {}};
}

void Runtime::keep(std::span<const std::uint32_t> batch) {
  for (const std::uint32_t index : batch) {
    if (undo_of_[index] != kNoIndex) {
      undo_.keep(undo_of_[index], parts_[part_of_[index]].iteration);
    }
  }
}

void Runtime::encode(std::span<const std::uint32_t> batch) {
  keep(batch);
  std::vector<BoundTask> works;
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
  std::vector<BoundTask> works;
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

void Runtime::encode_or_decode(const LocalTask& local, const Part& part) {
  StagedUnit& unit = staged_.at(local.task.gradient);
  if (local.task.kind == Kind::kDecode) return unit.decode(options_.seed, part.step);
  const auto kept = undo_of_staged_.find(local.task.gradient);
  if (kept != undo_of_staged_.end()) {
    for (const std::uint32_t encoder : kept->second) undo_.keep(encoder, part.iteration);
  }
  unit.encode(local.task.stage, options_.seed, part.step);
}

void Runtime::all_reduce(const LocalTask& local) {
  const std::span<std::byte> message =
      local.message == kNoIndex ? std::span<std::byte>() : buffer(local.message);
  runtime::all_reduce(local.task, program_.graph().divisor, program_.cast_of(local), *library_,
                      {used_slice(local), message, {}, {}});
  casync::Task sent = local.task;
  if (local.message == kNoIndex) sent.amount = bytes_of(used_slice(local));
  const std::lock_guard lock(mutex_);
  bytes_sent_ += casync::bytes_sent(program_.graph(), sent);
}

void Runtime::send(const LocalTask& local, std::uint32_t index) {
  const std::int64_t bytes =
      local.message == kNoIndex ? bytes_of(used_slice(local)) : message_bytes_[local.message];
  {
    const std::lock_guard lock(mutex_);
    bytes_sent_ += bytes;
  }
  parts_[part_of_[index]].exchange->send(transfer_of_[index], bytes);
}

std::span<float> Runtime::slice(const LocalTask& local) const {
  return units_[local.task.gradient].subspan(static_cast<std::size_t>(local.slice.begin),
                                             static_cast<std::size_t>(local.slice.elements));
}

std::span<float> Runtime::used_slice(const LocalTask& local) const {
  const casync::Factor* const factor = program_.graph().factor_of(local.task);
  if (factor == nullptr) return slice(local);
  const std::int64_t used = staged_.at(factor->unit).slice_values(factor->stage);
  return slice(local).first(static_cast<std::size_t>(used));
}

std::span<std::byte> Runtime::buffer(std::uint32_t message) const {
  const MessageBuffer& place = program_.messages()[message];
  return {arena_.get() + place.offset, static_cast<std::size_t>(place.capacity)};
}

std::span<std::byte> Runtime::payload(const LocalTask& local) const {
  if (local.message != kNoIndex) return buffer(local.message);
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
  const std::uint32_t number = part_of_[index];
  for (const std::uint32_t next : program_.successors(local)) {
    if (part_of_[next] == number && --waits_for_[next] == 0) release(next, at);
  }
  if (--parts_[number].remaining > 0) return;
  if (options_.pace == Pace::kUnit) ended_.push_back(number);
  changed_.notify_all();
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
      return options_.pace == Pace::kUnit ? take_turn(index, at) : push(collective_, index, at);
    case Kind::kRecv:  // the last it waited for is done: its message is here
      intervals_[index].start = at;
      return complete(index, at);
    default:
      return push(codec_, index, at);
  }
}

/// Queues all that may run now, in the one order of all ranks.
void Runtime::take_turn(std::uint32_t index, Clock::time_point at) {
  const std::span<const std::uint32_t> order = program_.collectives();
  const auto place = std::ranges::find(order, index) - order.begin();
  turns_.ready[static_cast<std::size_t>(place)] = true;
  while (turns_.ready[turns_.next]) {
    turns_.ready[turns_.next] = false;
    // No two at one instant, or the queue would order them itself.
    turns_.last = std::max(at, turns_.last + Clock::duration(1));
    push(collective_, order[turns_.next], turns_.last);
    turns_.next = (turns_.next + 1) % order.size();
  }
}

void Runtime::arrived(std::uint32_t tag, std::int64_t bytes, Clock::time_point at) {
  const std::uint32_t index = program_.index_of(tag);
  const std::lock_guard lock(mutex_);
  const LocalTask& local = program_.tasks()[index];
  if (local.message != kNoIndex) message_bytes_[local.message] = bytes;
  if (--waits_for_[index] == 0) release(index, at);
}

}  // namespace hipress::runtime
