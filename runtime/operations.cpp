#include "runtime/operations.hpp"

#include <vector>

namespace hipress::runtime {
namespace {

/// Divisor of the mean over nodes if the task's flags contain `flag`, else 1.
float divided_by(const casync::Task& task, std::uint8_t flag, std::uint32_t divisor) {
  return (task.flags & flag) != 0 ? static_cast<float>(divisor) : 1.0f;
}

template <kernels::ValueType kType>
void add_values(void* into, const void* other, std::size_t values) {
  const std::span<const void* const> others(&other, 1);
  kernels::merge(others, static_cast<std::int64_t>(values), into, kType, 1, 1);
}

}  // namespace

kernels::DrawKey draw_key(const casync::Task& task, std::int64_t first_element, std::uint64_t seed,
                          std::uint64_t iteration) {
  return {.seed = seed,
          .step = iteration,
          .node = task.node,
          .gradient = task.gradient,
          .role = static_cast<std::uint32_t>(task.role),
          .first_element = first_element};
}

std::int64_t encode(const casync::Task& task, std::uint32_t divisor, const kernels::Codec& codec,
                    const Operands& operands) {
  const BoundTask work{&task, operands};
  std::int64_t bytes = 0;
  encode({&work, 1}, divisor, codec, {&bytes, 1});
  return bytes;
}

std::vector<kernels::EncodeItem> encode_items(std::span<const BoundTask> batch,
                                              std::uint32_t divisor) {
  std::vector<kernels::EncodeItem> items;
  for (const BoundTask& work : batch) {
    const Operands& operands = work.operands;
    items.push_back({.values = operands.slice.data(),
                     .elements = static_cast<std::int64_t>(operands.slice.size()),
                     .divisor = divided_by(*work.task, casync::kDivideOwn, divisor),
                     .state = operands.state,
                     .message = operands.message.data(),
                     .key = operands.draws,
                     .message_bytes = operands.length});
  }
  return items;
}

void encode(std::span<const BoundTask> batch, std::uint32_t divisor, const kernels::Codec& codec,
            std::span<std::int64_t> bytes) {
  std::vector<kernels::EncodeItem> items = encode_items(batch, divisor);
  for (std::size_t i = 0; i < items.size(); ++i) {
    bytes[i] = codec.encoded_bytes(items[i].elements);
    items[i].message_bytes = &bytes[i];
  }
  codec.encode(items);
}

void decode(const casync::Task& task, std::uint32_t divisor, const kernels::Codec& codec,
            const Operands& operands) {
  const BoundTask work{&task, operands};
  decode({&work, 1}, divisor, codec);
}

DecodeItems::DecodeItems(std::span<const BoundTask> batch, std::uint32_t divisor) {
  std::size_t messages = 0;
  for (const BoundTask& work : batch) messages += 1 + work.operands.gathered.size();
  messages_.reserve(messages);  // items hold pointers into these vectors
  bytes_.reserve(messages);
  const auto hold = [this](std::span<const std::byte> message) {
    messages_.push_back(message.data());
    bytes_.push_back(static_cast<std::int64_t>(message.size()));
  };
  const auto last = [this](std::size_t count) {
    return kernels::DecodeItem{.messages = std::span(messages_).last(count),
                               .message_bytes = std::span(bytes_).last(count)};
  };
  for (const BoundTask& work : batch) {
    const casync::Task& task = *work.task;
    const Operands& operands = work.operands;
    const bool gathers = casync::gathers(task);
    const bool adds = (task.flags & casync::kAccumulate) != 0;
    hold(gathers ? operands.gathered.front() : operands.message);
    kernels::DecodeItem item = last(1);
    item.elements = static_cast<std::int64_t>(operands.slice.size());
    item.values = operands.slice.data();
    item.mode = adds ? kernels::DecodeMode::kAdd : kernels::DecodeMode::kOverwrite;
    item.own_divisor = divided_by(task, casync::kDivideOwn, divisor);
    item.sum_divisor = divided_by(task, casync::kDivideSum, divisor);
    items_.push_back(item);
    if (!gathers || operands.gathered.size() == 1) continue;
    for (const std::span<std::byte> message : std::span(operands.gathered).subspan(1)) {
      hold(message);
    }
    const kernels::DecodeItem rest = last(operands.gathered.size() - 1);
    item.messages = rest.messages;
    item.message_bytes = rest.message_bytes;
    item.mode = kernels::DecodeMode::kAdd;
    others_.push_back(item);
  }
}

void decode(std::span<const BoundTask> batch, std::uint32_t divisor, const kernels::Codec& codec) {
  const DecodeItems decoded(batch, divisor);
  codec.decode(decoded.items());
  if (!decoded.others().empty()) codec.decode(decoded.others());
}

MergeDivisors merge_divisors(const casync::Task& task, std::uint32_t divisor) {
  return {divided_by(task, casync::kDivideOwn, divisor),
          divided_by(task, casync::kDivideSum, divisor)};
}

void merge(const casync::Task& task, std::uint32_t divisor, const Operands& operands) {
  // Message buffers are aligned, so the received bytes can be read as fp32.
  const auto* const other = reinterpret_cast<const float*>(operands.message.data());
  const MergeDivisors divisors = merge_divisors(task, divisor);
  kernels::merge({&other, 1}, static_cast<std::int64_t>(operands.slice.size()),
                 operands.slice.data(), divisors.own, divisors.sum);
}

const transport::Addition& addition(const kernels::Codec* cast) {
  using kernels::ValueType;
  constexpr std::size_t kHalf = 2;
  static constexpr transport::Addition kOfFp16{kHalf, add_values<ValueType::kFloat16>};
  static constexpr transport::Addition kOfBf16{kHalf, add_values<ValueType::kBfloat16>};
  if (cast == nullptr) return transport::kFloatAddition;
  return cast->traits().message_values == ValueType::kFloat16 ? kOfFp16 : kOfBf16;
}

std::span<std::byte> summands(const casync::Task& task, std::uint32_t divisor,
                              const kernels::Codec* cast, const Operands& operands) {
  if (cast == nullptr) return std::as_writable_bytes(operands.slice);
  const std::int64_t bytes = encode(task, divisor, *cast, operands);
  return operands.message.first(static_cast<std::size_t>(bytes));
}

void take_mean(const casync::Task& task, std::uint32_t divisor, const kernels::Codec* cast,
               const Operands& operands) {
  if (cast != nullptr) {
    return decode(casync::cast_of(task, casync::Kind::kDecode), divisor, *cast, operands);
  }
  const auto nodes = static_cast<float>(divisor);
  for (float& value : operands.slice) value /= nodes;
}

void all_reduce(const casync::Task& task, std::uint32_t divisor, const kernels::Codec* cast,
                transport::Collective& collective, const Operands& operands) {
  collective.all_reduce(summands(task, divisor, cast, operands), addition(cast));
  take_mean(task, divisor, cast, operands);
}

}  // namespace hipress::runtime
