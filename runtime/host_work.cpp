#include "runtime/host_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "casync/topology.hpp"
#include "io/file.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;

constexpr std::align_val_t kArenaAlignment{64};

/// Key of a unit's residuals. A gradient's key is its name, so that residuals survive a change of
/// plan. A bulk group's key is a hash of its members' names, so that residuals survive unless the
/// grouping changes.
std::string state_name(const casync::Unit& unit, const models::Model& model) {
  if (unit.topology->operation == casync::Operation::kGather) return unit.name;
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

void HostWork::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, kArenaAlignment);
}

HostWork::HostWork(const Program& program, std::vector<std::span<float>> units,
                   kernels::StateStore& states, std::uint64_t seed, bool keeps_undo)
    : program_(program),
      seed_(seed),
      units_(std::move(units)),
      arena_(static_cast<std::byte*>(
          ::operator new[](static_cast<std::size_t>(program.arena_bytes()), kArenaAlignment))),
      message_bytes_(program.messages().size()) {
  prepare_states(states, keeps_undo);
  prepare_stages(states, keeps_undo);
}

void HostWork::prepare_states(kernels::StateStore& states, bool keeps_undo) {
  states_.resize(program_.tasks().size());
  undo_of_.assign(states_.size(), kNoIndex);
  for (std::uint32_t index = 0; index < states_.size(); ++index) {
    const LocalTask& local = program_.tasks()[index];
    if (local.task.kind != Kind::kEncode || local.message == kNoIndex) continue;
    const auto algorithm = static_cast<std::size_t>(local.task.algorithm);
    const kernels::Codec& codec = *program_.plan().codecs[algorithm];
    if (state_arrays(codec) == 0) continue;
    const casync::Unit& unit = program_.layout().units[local.task.gradient];
    states_[index] = states.slice_of(codec, state_name(unit, program_.model()),
                                     static_cast<std::uint32_t>(local.task.role), unit.elements,
                                     local.slice.begin, local.slice.elements);
    if (!keeps_undo) continue;
    undo_of_[index] = undo_.add({.unit = local.task.gradient,
                                 .first = local.slice.begin,
                                 .elements = local.slice.elements,
                                 .codec = &codec,
                                 .state = states_[index],
                                 .arrays = state_arrays(codec),
                                 .length = local.slice.elements});
  }
}

void HostWork::prepare_stages(kernels::StateStore& states, bool keeps_undo) {
  const casync::Layout& layout = program_.layout();
  const auto length = [&](std::uint32_t factor) {  // no two factors share a cache line
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
  for (const std::uint32_t unit : layout.owners()) {
    const casync::Unit& what = layout.units[unit];
    std::vector<std::span<float>> factors(units_.begin() + what.first_factor,
                                          units_.begin() + what.first_factor + what.factors);
    const StagedUnit& staged =
        staged_
            .try_emplace(unit, layout, unit, program_.model(), program_.plan(), units_[unit],
                         std::move(factors), state_of)
            .first->second;
    if (!keeps_undo) continue;
    for (Undo::Encoder& encoder : staged.encoders()) {
      encoder.unit = unit;
      undo_of_staged_[unit].push_back(undo_.add(encoder));
    }
  }
}

void HostWork::take_residuals(std::uint32_t unit, std::span<float> sums) {
  for (std::uint32_t index = 0; index < states_.size(); ++index) {
    const LocalTask& local = program_.tasks()[index];
    const kernels::State& state = states_[index];
    if (state.data == nullptr || local.task.gradient != unit) continue;
    const auto algorithm = static_cast<std::size_t>(local.task.algorithm);
    const kernels::Codec& codec = *program_.plan().codecs[algorithm];
    if (state.deferred != nullptr) codec.settle(state, local.slice.elements);
    // The last of several arrays (dgc has velocity and pending) holds the values not sent.
    float* const held = state.data + (state_arrays(codec) - 1) * state.stride;
    const bool of_mean =
        local.task.role == casync::Role::kServer || (local.task.flags & casync::kDivideOwn) != 0;
    const auto times = of_mean ? static_cast<float>(program_.graph().divisor) : 1.0f;
    for (std::int64_t i = 0; i < local.slice.elements; ++i) {
      sums[static_cast<std::size_t>(local.slice.begin + i)] += times * std::exchange(held[i], 0.0f);
    }
  }
  const auto staged = staged_.find(unit);
  if (staged != staged_.end()) staged->second.take_residuals(sums);
}

std::vector<Factor> HostWork::factors() const {
  std::vector<Factor> factors;
  for (const auto& [unit, staged] : staged_) staged.collect_factors(factors);
  return factors;
}

void HostWork::run(std::uint32_t index, const When& when) {
  const LocalTask& local = program_.tasks()[index];
  if (casync::codes_factors(local.task)) return code_factors(local, when);
  std::vector<std::uint32_t> batch{index};
  const auto members = program_.members(local);
  batch.insert(batch.end(), members.begin(), members.end());
  switch (local.task.kind) {
    case Kind::kEncode:
      return encode(batch, when);
    case Kind::kDecode:
      return decode(batch, when);
    default:
      return merge(batch, when);
  }
}

Operands HostWork::operands(std::uint32_t index, const When& when) const {
  const LocalTask& local = program_.tasks()[index];
  if (local.task.kind == Kind::kEncode) {
    return {slice(local), buffer(local.message), states_[index],
            draw_key(local.task, local.slice.begin, seed_, when.step)};
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

void HostWork::encode(std::span<const std::uint32_t> batch, const When& when) {
  for (const std::uint32_t index : batch) {
    if (undo_of_[index] != kNoIndex) undo_.keep(undo_of_[index], when.iteration);
  }
  std::vector<BoundTask> works;
  for (const std::uint32_t index : batch) {
    works.push_back({&program_.tasks()[index].task, operands(index, when)});
  }
  std::vector<std::int64_t> bytes(batch.size());
  const auto algorithm = static_cast<std::size_t>(works.front().task->algorithm);
  runtime::encode(works, program_.graph().divisor, *program_.plan().codecs[algorithm], bytes);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    message_bytes_[program_.tasks()[batch[i]].message] = bytes[i];
  }
}

void HostWork::decode(std::span<const std::uint32_t> batch, const When& when) {
  std::vector<BoundTask> works;
  for (const std::uint32_t index : batch) {
    works.push_back({&program_.tasks()[index].task, operands(index, when)});
  }
  const auto algorithm = static_cast<std::size_t>(works.front().task->algorithm);
  runtime::decode(works, program_.graph().divisor, *program_.plan().codecs[algorithm]);
}

void HostWork::merge(std::span<const std::uint32_t> batch, const When& when) {
  for (const std::uint32_t index : batch) {
    runtime::merge(program_.tasks()[index].task, program_.graph().divisor, operands(index, when));
  }
}

void HostWork::code_factors(const LocalTask& local, const When& when) {
  const auto kept = undo_of_staged_.find(local.task.gradient);
  if (local.task.kind == Kind::kEncode && kept != undo_of_staged_.end()) {
    for (const std::uint32_t encoder : kept->second) undo_.keep(encoder, when.iteration);
  }
  staged_.at(local.task.gradient).run(local.task, seed_, when.step);
}

void HostWork::all_reduce(const LocalTask& local, transport::Collective& library) const {
  const std::span<std::byte> message =
      local.message == kNoIndex ? std::span<std::byte>() : buffer(local.message);
  runtime::all_reduce(local.task, program_.graph().divisor, program_.cast_of(local), library,
                      {used_slice(local), message, {}, {}});
}

std::int64_t HostWork::bytes_to_send(const LocalTask& local) const {
  return local.message == kNoIndex ? bytes_of(used_slice(local)) : message_bytes_[local.message];
}

std::int64_t HostWork::bytes_sent(const LocalTask& local) const {
  if (local.task.kind == Kind::kSend) return bytes_to_send(local);
  casync::Task sent = local.task;
  if (local.message == kNoIndex) sent.amount = bytes_of(used_slice(local));
  return casync::bytes_sent(program_.graph(), sent);
}

std::span<float> HostWork::slice(const LocalTask& local) const {
  return units_[local.task.gradient].subspan(static_cast<std::size_t>(local.slice.begin),
                                             static_cast<std::size_t>(local.slice.elements));
}

std::span<float> HostWork::used_slice(const LocalTask& local) const {
  const casync::Factor* const factor = program_.graph().factor_of(local.task);
  if (factor == nullptr) return slice(local);
  const std::int64_t used = staged_.at(factor->unit).slice_values(factor->stage);
  return slice(local).first(static_cast<std::size_t>(used));
}

std::span<std::byte> HostWork::buffer(std::uint32_t message) const {
  const MessageBuffer& place = program_.messages()[message];
  return {arena_.get() + place.offset, static_cast<std::size_t>(place.capacity)};
}

std::span<std::byte> HostWork::payload(const LocalTask& local) const {
  if (local.message != kNoIndex) return buffer(local.message);
  return std::as_writable_bytes(slice(local));
}

}  // namespace hipress::runtime
