#include "casync/partition.hpp"

namespace hipress::casync {

PartitionTasks::PartitionTasks(GraphBuilder& builder, const UnitWork& work, std::int64_t partition)
    : builder_(builder),
      work_(work),
      ranks_(work.ranks.nodes > 0 ? work.ranks : Ranks{.nodes = builder.nodes()}),
      partition_(static_cast<std::uint32_t>(partition)),
      slice_(casync::slice(work.elements, work.partitions, partition)),
      message_bytes_(work.algorithm ? work.algorithm->message_bytes(slice_.elements)
                                    : slice_.elements * static_cast<std::int64_t>(sizeof(float))) {}

std::uint32_t PartitionTasks::node(std::int64_t number) const {
  const std::int64_t nodes = ranks_.nodes;
  auto place = static_cast<std::uint32_t>((number % nodes + nodes) % nodes);
  const std::uint32_t on_host = place % rails_;
  place += (on_host + partition_) % rails_ - on_host;
  return ranks_.first + place * ranks_.stride;
}

void PartitionTasks::take_rail(std::uint32_t rails) {
  const bool whole_hosts = ranks_.stride == 1 && ranks_.nodes > rails && ranks_.nodes % rails == 0;
  rails_ = whole_hosts ? rails : 1;
}

std::int64_t PartitionTasks::number_of(std::int64_t k) const {
  const std::int64_t on_host = k % rails_;
  return k - on_host + (on_host + rails_ - partition_ % rails_) % rails_;
}

TaskId PartitionTasks::encode(std::uint32_t node, Role role, std::uint32_t peer_offset,
                              TaskId after, TaskFlags flags) {
  Task encode = task(Kind::kEncode, node, peer_offset, slice_.elements);
  encode.role = role;
  encode.flags = flags;
  return add_after(encode, after, {slice(node), new_message(node, node)});
}

TaskId PartitionTasks::transfer(std::uint32_t from, std::uint32_t to, TaskId message, Lands lands) {
  const std::uint32_t peer_offset = offset(from, to);
  Task send = task(Kind::kSend, from, peer_offset, message_bytes_);
  if (slice_.elements >= kLongElements) send.flags |= kOfLongSlice;
  const std::uint32_t sent = compressed() ? builder_.written_by(message) : slice(from);
  const std::uint32_t filled =
      compressed() || lands == Lands::kInMessage ? new_message(to, from) : slice(to);
  const TaskId sending = add_after(send, message, {sent, kNoIndex});
  return add_after(task(Kind::kRecv, to, peer_offset, message_bytes_), sending, {kNoIndex, filled});
}

TaskId PartitionTasks::add(std::uint32_t node, TaskId message, TaskId other,
                           std::uint32_t peer_offset, TaskFlags flags) {
  Task sum = task(compressed() ? Kind::kDecode : Kind::kMerge, node, peer_offset, slice_.elements);
  sum.flags = flags | kAccumulate;
  const TaskId id = add_after(sum, message, {builder_.written_by(message), slice(node)});
  builder_.edge(other, id);
  return id;
}

TaskId PartitionTasks::contribute(const Contribution& what) {
  const std::uint32_t peer_offset = offset(what.from, what.to);
  TaskId message = what.ready;
  if (compressed()) message = encode(what.from, what.role, peer_offset, message, what.encoded);
  const TaskId arrival = transfer(what.from, what.to, message, Lands::kInMessage);
  return add(what.to, arrival, what.other, peer_offset, what.added);
}

TaskId PartitionTasks::decode(std::uint32_t node, TaskId message, std::uint32_t peer_offset) {
  return add_after(task(Kind::kDecode, node, peer_offset, slice_.elements), message,
                   {builder_.written_by(message), slice(node)});
}

void PartitionTasks::gather_messages() {
  for (std::uint32_t node = 0; node < builder_.nodes(); ++node) {
    gathered_.push_back(builder_.gathered(node, work_.algorithm_index, message_bytes_));
  }
}

TaskId PartitionTasks::decode_gathered(std::uint32_t node, std::span<const TaskId> messages) {
  Task sum = task(Kind::kDecode, node, 0, slice_.elements);
  sum.flags = kGathers;
  const TaskId id = builder_.add(sum, {gathered_[node], slice(node)});
  for (const TaskId message : messages) builder_.edge(message, id);
  return id;
}

TaskId PartitionTasks::deliver(std::uint32_t from, std::uint32_t to, TaskId message) {
  const TaskId arrival = transfer(from, to, message, Lands::kInSlice);
  const TaskId written = compressed() ? decode(to, arrival, offset(from, to)) : arrival;
  builder_.edge(work_.ready[to], written);
  return arrival;
}

std::uint32_t PartitionTasks::slice(std::uint32_t node) {
  return builder_.slice_of(task(Kind::kJoin, node, 0, 0),
                           slice_.elements * static_cast<std::int64_t>(sizeof(float)));
}

Task PartitionTasks::task(Kind kind, std::uint32_t node, std::uint32_t peer_offset,
                          std::int64_t amount) const {
  return {.amount = amount,
          .gradient = work_.unit,
          .partition = partition_,
          .node = node,
          .peer_offset = peer_offset,
          .kind = kind,
          .algorithm = work_.algorithm_index};
}

TaskId PartitionTasks::add_after(const Task& task, TaskId before, const Operands& operands) {
  const TaskId id = builder_.add(task, operands);
  builder_.edge(before, id);
  return id;
}

}  // namespace hipress::casync
