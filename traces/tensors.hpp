#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "traces/json_trace.hpp"

/// What traces say of a tensor.
namespace hipress::traces {

/// The product of its dimensions; 0 for none, and for what is no shape.
std::int64_t elements_or_none(std::span<const std::int64_t> shape);

/// Elements of a sparse tensor; 0 if the trace does not tell.
struct SparseSize {
  std::int64_t indices = 0, values = 0;
};

/// True if the operator of that name handles a sparse tensor's indices and values.
bool is_of_sparse_tensors(std::string_view name);

/// Size of the sparse tensor that an operator of that name makes of its inputs; 0 if not told.
SparseSize sparse_size_of(std::string_view name, const InputShapes& shapes);

/// "float32", "float16" or "bfloat16" of the trace's "Float", "c10::Half", "Tensor(float)",
/// "GenericList[Tensor(float)]" …; as it is, for other types.
std::string dtype_of(const std::string& text);

}  // namespace hipress::traces
