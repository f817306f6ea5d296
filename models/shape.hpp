#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::models {

/// Most dimensions of a shape.
inline constexpr std::size_t kMaxDimensions = 16;

/// The product of the dimensions. io::InputError for more than kMaxDimensions, a dimension below 1,
/// and more than kMaxElements elements.
std::int64_t elements_of(std::span<const std::int64_t> shape);

/// The same, and io::InputError if the shape is not one of so many elements.
void check_shape(std::span<const std::int64_t> shape, std::int64_t elements);

/// The dimensions of "64x3x7x7". io::InputError for any other form, and as elements_of().
std::vector<std::int64_t> parse_shape(std::string_view text);

/// "64x3x7x7", which parse_shape() reads.
std::string format_shape(std::span<const std::int64_t> shape);

}  // namespace hipress::models
