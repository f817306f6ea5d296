#include "models/tensor_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"

namespace hipress::models {
namespace {

bool is_statistic(const std::string& name) {
  return name.ends_with("running_mean") || name.ends_with("running_var") ||
         name.ends_with("num_batches_tracked") || name.ends_with("moving_mean") ||
         name.ends_with("moving_variance");
}

}  // namespace

void TensorList::add(const std::string& name, Shape shape, std::int64_t elements, int line) {
  if (const std::string found = io::unfit_for_name(name); !found.empty()) {
    throw io::InputError(file_, line, fmt::format("a tensor's name holds {}; rename it", found));
  }
  if (is_statistic(name)) {
    ++statistics_;
    return;
  }
  if (elements < 1 || elements > kMaxElements - total_) {
    throw io::InputError(file_, line,
                         fmt::format("tensor {} has {} elements; all together have 1 to 2^48",
                                     io::quote(name), elements));
  }
  if (!names_.insert(name).second) {
    throw io::InputError(file_, line, fmt::format("tensor {} is there twice", io::quote(name)));
  }
  total_ += elements;
  Gradient gradient;
  gradient.name = name;
  gradient.elements = elements;
  gradient.shape = std::move(shape);
  tensors_.push_back(std::move(gradient));
}

void TensorList::add(const std::string& name, std::int64_t elements, int line) {
  add(name, {}, elements, line);
}

void TensorList::add(const std::string& name, Shape shape, int line) {
  double product = 1;
  for (const std::int64_t one : shape) product *= static_cast<double>(one);
  const bool fits = std::ranges::all_of(shape, [](std::int64_t one) { return one > 0; }) &&
                    product <= static_cast<double>(kMaxElements);
  if (!fits) {
    throw io::InputError(
        file_, line,
        fmt::format("tensor {} has a shape of none or of too many elements", io::quote(name)));
  }
  add(name, std::move(shape), static_cast<std::int64_t>(product), line);
}

Model TensorList::take() {
  Model model;
  std::ranges::reverse(tensors_);
  model.gradients = std::move(tensors_);
  return model;
}

std::string TensorList::left_out() const {
  if (statistics_ == 0) return {};
  return fmt::format("{} running statistics of norms are left out: they have no gradients",
                     statistics_);
}

}  // namespace hipress::models
