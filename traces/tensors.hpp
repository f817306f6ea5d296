#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Name of a type of elements as PyTorch has it ("float32", "int64", "bool") of the trace's
/// "Float", "c10::Half", "long int", "GenericList[Tensor(float)]" …; text of unknown types as it
/// is.
std::string dtype_of(const std::string& text);

/// Bytes of an element of the type that dtype_of() names; 0 for an unknown type.
std::int64_t bytes_of_type(const std::string& dtype);

/// True for a collective's type of whole numbers, which carries counts or flags and no gradient,
/// such as DDP's map of the parameters that were used.
bool carries_counts(const std::string& dtype);

/// Elements of all tensors together; 0: one is not told.
std::int64_t elements_of_all(std::span<const std::vector<std::int64_t>> shapes);

}  // namespace hipress::traces
