#include "runtime/device_work.hpp"

namespace hipress::runtime {

using casync::Kind;

DeviceWork::DeviceWork(const Program& its_program, Device& its_device, DeviceTransport transport,
                       std::uint64_t seed)
    : program(its_program),
      device(its_device),
      memory(program, device, transport),
      schedule(device, program),
      seed_(seed) {
  for (const casync::Algorithm& algorithm : program.plan().plan.algorithms) {
    codecs_.push_back(device.codec(algorithm.name));
  }
  for (const MessageBuffer& message : program.messages()) {
    message_bytes_.push_back(message.capacity);
  }
  varies_.assign(message_bytes_.size(), false);
  for (const LocalTask& local : program.tasks()) {
    if (local.task.kind != Kind::kEncode) continue;
    const auto algorithm = static_cast<std::size_t>(local.task.algorithm);
    varies_[local.message] = codecs_[algorithm]->traits().varies;
  }
}

void DeviceWork::enqueue_codec(std::uint32_t index) {
  const bool arrived =
      schedule.follows(index, Stream::kInbound) || schedule.follows(index, Stream::kOutbound);
  const Stream stream = arrived ? Stream::kArrivalCodec : Stream::kOwnCodec;
  std::vector<std::uint32_t> batch{index};
  const auto members = program.members(program.tasks()[index]);
  batch.insert(batch.end(), members.begin(), members.end());
  schedule.enqueue(stream, {&index, 1}, [&] { run_codec(works(batch), stream); });
}

void DeviceWork::run_codec(std::span<const BoundTask> batch, Stream stream) const {
  const casync::Task& first = *batch.front().task;
  const std::uint32_t divisor = program.graph().divisor;
  if (first.kind == Kind::kMerge) {
    for (const BoundTask& one : batch) {
      const MergeDivisors divisors = merge_divisors(*one.task, divisor);
      device.merge(reinterpret_cast<const float*>(one.operands.message.data()),
                   static_cast<std::int64_t>(one.operands.slice.size()), one.operands.slice.data(),
                   divisors.own, divisors.sum, stream);
    }
    return;
  }
  const kernels::Codec& codec = *codecs_[static_cast<std::size_t>(first.algorithm)];
  if (first.kind == Kind::kEncode) {
    codec.encode(encode_items(batch, divisor), device.handle(stream));
  } else {
    const DecodeItems decoded(batch, divisor);
    codec.decode(decoded.items(), device.handle(stream));
    if (!decoded.others().empty()) codec.decode(decoded.others(), device.handle(stream));
  }
}

void DeviceWork::run_cast(const LocalTask& local, Kind kind, Stream stream) const {
  if (!casync::casts(local.task)) return;
  const casync::Task task = casync::cast_of(local.task, kind);
  const BoundTask work{&task, {memory.slice(local), memory.payload(local), {}, {}}};
  run_codec({&work, 1}, stream);
}

std::vector<BoundTask> DeviceWork::works(std::span<const std::uint32_t> batch) const {
  std::vector<BoundTask> all;
  for (const std::uint32_t index : batch) {
    all.push_back({&program.tasks()[index].task, operands(index)});
  }
  return all;
}

Operands DeviceWork::operands(std::uint32_t index) const {
  const LocalTask& local = program.tasks()[index];
  if (casync::gathers(local.task)) {
    Operands operands{.slice = memory.slice(local), .message = {}, .state = {}, .draws = {}};
    for (const std::uint32_t message : program.gathered(local)) {
      operands.gathered.push_back(used(message));
    }
    return operands;
  }
  if (local.task.kind != Kind::kEncode) {
    return {memory.slice(local), used(local.message), {}, {}};
  }
  return {.slice = memory.slice(local),
          .message = memory.buffer(local.message),
          .state = memory.state(index),
          .draws = draw_key(local.task, local.slice.begin, seed_, iteration_),
          .length = varies(local) ? memory.length(local.message) : nullptr};
}

std::span<std::byte> DeviceWork::used(std::uint32_t message) const {
  return memory.buffer(message).first(static_cast<std::size_t>(message_bytes_[message]));
}

std::int64_t DeviceWork::message_bytes(const LocalTask& local) const {
  return local.message == kNoIndex ? memory.most_bytes(local) : message_bytes_[local.message];
}

bool DeviceWork::varies(const LocalTask& local) const {
  return local.message != kNoIndex && varies_[local.message];
}

}  // namespace hipress::runtime
