#include "models/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "models/model.hpp"

namespace hipress::models {
namespace {

void check_dimensions(std::size_t count) {
  if (count <= kMaxDimensions) return;
  throw io::InputError(
      fmt::format("shape has {} dimensions; give at most {}", count, kMaxDimensions));
}

}  // namespace

std::int64_t elements_of(std::span<const std::int64_t> shape) {
  check_dimensions(shape.size());
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension < 1) {
      throw io::InputError(fmt::format("shape {}: each dimension must be at least 1, got {}",
                                       format_shape(shape), dimension));
    }
    if (dimension > kMaxElements / elements) {
      throw io::InputError(fmt::format(
          "shape {} has more than 2^48 elements; give smaller dimensions", format_shape(shape)));
    }
    elements *= dimension;
  }
  return elements;
}

void check_shape(std::span<const std::int64_t> shape, std::int64_t elements) {
  const std::int64_t product = elements_of(shape);
  if (product == elements) return;
  throw io::InputError(
      fmt::format("shape {} has {} elements, but elements says {}; correct one of them, or leave "
                  "the shape out",
                  format_shape(shape), product, elements));
}

std::vector<std::int64_t> parse_shape(std::string_view text) {
  constexpr std::string_view kWhat = "each dimension of a shape, such as 64x3x7x7,";
  check_dimensions(static_cast<std::size_t>(std::count(text.begin(), text.end(), 'x')) + 1);
  std::vector<std::int64_t> shape;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    shape.push_back(io::parse_integer(text.substr(begin, end - begin), kWhat, 1, kMaxElements));
    begin = end + 1;
  }
  elements_of(shape);
  return shape;
}

std::string format_shape(std::span<const std::int64_t> shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace hipress::models
