#include "executor/operations.hpp"

namespace hipress::executor {
namespace {

/// By what the mean over nodes divides, where the task's flags say that it happens.
float divisor(const casync::Task& task, std::uint8_t flag, std::uint32_t nodes) {
  return (task.flags & flag) != 0 ? static_cast<float>(nodes) : 1.0f;
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

std::int64_t encode(const casync::Task& task, std::uint32_t nodes, const kernels::Codec& codec,
                    const Operands& operands) {
  const auto elements = static_cast<std::int64_t>(operands.slice.size());
  std::int64_t bytes = codec.encoded_bytes(elements);
  const kernels::EncodeItem item{.values = operands.slice.data(),
                                 .elements = elements,
                                 .divisor = divisor(task, casync::kDivideOwn, nodes),
                                 .state = operands.state,
                                 .message = operands.message.data(),
                                 .key = operands.draws,
                                 .message_bytes = &bytes};
  codec.encode({&item, 1});
  return bytes;
}

void decode(const casync::Task& task, std::uint32_t nodes, const kernels::Codec& codec,
            const Operands& operands) {
  const std::byte* const message = operands.message.data();
  const auto bytes = static_cast<std::int64_t>(operands.message.size());
  const bool add = (task.flags & casync::kAccumulate) != 0;
  const kernels::DecodeItem item{
      .messages = {&message, 1},
      .message_bytes = {&bytes, 1},
      .elements = static_cast<std::int64_t>(operands.slice.size()),
      .values = operands.slice.data(),
      .mode = add ? kernels::DecodeMode::kAdd : kernels::DecodeMode::kOverwrite,
      .own_divisor = divisor(task, casync::kDivideOwn, nodes),
      .sum_divisor = divisor(task, casync::kDivideSum, nodes)};
  codec.decode({&item, 1});
}

void merge(const casync::Task& task, std::uint32_t nodes, const Operands& operands) {
  // Message buffers are aligned, so the bytes that arrived are fp32 values as they lie.
  const auto* const other = reinterpret_cast<const float*>(operands.message.data());
  kernels::merge({&other, 1}, static_cast<std::int64_t>(operands.slice.size()),
                 operands.slice.data(), divisor(task, casync::kDivideOwn, nodes),
                 divisor(task, casync::kDivideSum, nodes));
}

}  // namespace hipress::executor
