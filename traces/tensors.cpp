#include "traces/tensors.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "io/error.hpp"
#include "models/model.hpp"
#include "models/shape.hpp"

namespace hipress::traces {

std::int64_t elements_or_none(std::span<const std::int64_t> shape) {
  if (shape.empty()) return 0;
  try {
    return models::elements_of(shape);
  } catch (const io::InputError&) {
    return 0;
  }
}

namespace {

constexpr std::string_view kMakesSparse = "aten::_sparse_coo_tensor_unsafe";

}  // namespace

bool is_of_sparse_tensors(std::string_view name) {
  return name == kMakesSparse || name == "aten::_indices" || name == "aten::_values";
}

SparseSize sparse_size_of(std::string_view name, const InputShapes& shapes) {
  if (name != kMakesSparse || shapes.first.empty() || shapes.second.empty()) return {};
  return {elements_or_none(shapes.first.front()), elements_or_none(shapes.second.front())};
}

namespace {

/// An element type: PyTorch's name, its size, and the names that traces use for it (from
/// c10::ScalarType and C++, without "c10::").
struct TypeRow {
  std::string_view name;
  std::int64_t bytes;
  std::array<std::string_view, 3> written;
};
constexpr TypeRow kTypes[] = {
    {"float32", 4, {"Float", "float"}},
    {"float16", 2, {"Half"}},
    {"bfloat16", 2, {"BFloat16"}},
    {"float64", 8, {"Double", "double"}},
    {"int64", 8, {"Long", "long int", "long"}},
    {"int32", 4, {"Int", "int"}},
    {"int16", 2, {"Short", "short int", "short"}},
    {"int8", 1, {"Char", "signed char", "char"}},
    {"uint64", 8, {"UInt64", "long unsigned int", "unsigned long"}},
    {"uint32", 4, {"UInt32", "unsigned int"}},
    {"uint16", 2, {"UInt16", "short unsigned int", "unsigned short"}},
    {"uint8", 1, {"Byte", "unsigned char"}},
    {"bool", 1, {"Bool"}},
    {"complex32", 4, {"ComplexHalf", "complex<c10::Half>"}},
    {"complex64", 8, {"ComplexFloat", "complex<float>"}},
    {"complex128", 16, {"ComplexDouble", "complex<double>"}},
    {"float8_e4m3fn", 1, {"Float8_e4m3fn"}},
    {"float8_e4m3fnuz", 1, {"Float8_e4m3fnuz"}},
    {"float8_e5m2", 1, {"Float8_e5m2"}},
    {"float8_e5m2fnuz", 1, {"Float8_e5m2fnuz"}},
    {"float8_e8m0fnu", 1, {"Float8_e8m0fnu"}},
};

/// Removes a wrapping: a beginning such as "Tensor(" and its closing bracket.
void unwrap(std::string_view& text, std::string_view open, char close) {
  if (!text.starts_with(open) || !text.ends_with(close)) return;
  text = text.substr(open.size(), text.size() - open.size() - 1);
}

}  // namespace

std::string dtype_of(const std::string& whole) {
  std::string_view text = whole;
  // A list of tensors of one type has their type.
  unwrap(text, "GenericList[", ']');
  text = text.substr(0, text.find(','));
  unwrap(text, "Tensor(", ')');
  constexpr std::string_view kNamespace = "c10::";
  if (text.starts_with(kNamespace)) text.remove_prefix(kNamespace.size());
  for (const TypeRow& row : kTypes) {
    const bool is_written = std::ranges::find(row.written, text) != row.written.end();
    if (row.name == text || (is_written && !text.empty())) {
      return std::string(row.name);
    }
  }
  return whole;
}

std::int64_t bytes_of_type(const std::string& dtype) {
  const auto row = std::ranges::find(kTypes, dtype, &TypeRow::name);
  return row == std::end(kTypes) ? 0 : row->bytes;
}

bool carries_counts(const std::string& dtype) {
  const std::string type = dtype_of(dtype);
  return type == "int32" || type == "int64";
}

std::int64_t elements_of_all(std::span<const std::vector<std::int64_t>> shapes) {
  std::int64_t sum = 0;
  for (const auto& shape : shapes) {
    const std::int64_t elements = elements_or_none(shape);
    if (elements == 0 || elements > models::kMaxElements - sum) return 0;
    sum += elements;
  }
  return sum;
}

}  // namespace hipress::traces
