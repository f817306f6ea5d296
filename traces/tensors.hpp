#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/json_trace.hpp"

/// Sizes and types of tensors in traces.
namespace hipress::traces {

/// Product of the dimensions. 0 if there are none, or if the shape is invalid.
std::int64_t elements_or_none(std::span<const std::int64_t> shape);

/// Elements of a sparse tensor; 0 if unknown.
struct SparseSize {
  std::int64_t indices = 0, values = 0;
};

/// True if the operator works with the indices and values of a sparse tensor.
bool is_of_sparse_tensors(std::string_view name);

/// Size of the sparse tensor that an operator makes from its inputs; 0 if unknown.
SparseSize sparse_size_of(std::string_view name, const InputShapes& shapes);

/// PyTorch's name of an element type ("float32", "int64", "bool") for the trace's "Float",
/// "c10::Half", "long int", "GenericList[Tensor(float)]" …. Returns other text as it is.
std::string dtype_of(const std::string& text);

/// Bytes per element of a type named by dtype_of(); 0 if unknown.
std::int64_t bytes_of_type(const std::string& dtype);

/// True for integer types. A collective of integers carries counts or flags, such as DDP's map of
/// used parameters, and no gradient.
bool carries_counts(const std::string& dtype);

/// Total elements of the tensors; 0 if one is unknown.
std::int64_t elements_of_all(std::span<const std::vector<std::int64_t>> shapes);

}  // namespace hipress::traces
