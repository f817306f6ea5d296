#include "traces/tensors.hpp"

#include "io/error.hpp"
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

std::string dtype_of(const std::string& whole) {
  // A list of tensors of one type has that.
  constexpr std::string_view kList = "GenericList[";
  std::string text = whole;
  if (text.starts_with(kList) && text.ends_with(']')) {
    text = text.substr(kList.size(), text.size() - kList.size() - 1);
    text = text.substr(0, text.find(','));
  }
  struct Row {
    std::string_view text, dtype;
  };
  static constexpr Row kRows[] = {
      {"Float", "float32"},
      {"float", "float32"},
      {"Half", "float16"},
      {"c10::Half", "float16"},
      {"BFloat16", "bfloat16"},
      {"c10::BFloat16", "bfloat16"},
      {"Tensor(float)", "float32"},
      {"Tensor(c10::Half)", "float16"},
      {"Tensor(c10::BFloat16)", "bfloat16"},
  };
  for (const Row& row : kRows) {
    if (row.text == text) return std::string(row.dtype);
  }
  return whole;
}

}  // namespace hipress::traces
