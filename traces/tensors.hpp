#pragma once

#include <cstdint>
#include <span>
#include <string>

/// What traces say of a tensor.
namespace hipress::traces {

/// The product of its dimensions; 0 for none, and for what is no shape.
std::int64_t elements_or_none(std::span<const std::int64_t> shape);

/// "float32", "float16" or "bfloat16" of the trace's "Float", "c10::Half", "Tensor(float)",
/// "GenericList[Tensor(float)]" …; as it is, for other types.
std::string dtype_of(const std::string& text);

}  // namespace hipress::traces
