#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::models {

/// Maximum number of dimensions of a shape.
inline constexpr std::size_t kMaxDimensions = 16;

/// Product of the dimensions. Throws io::InputError for more than kMaxDimensions dimensions, a
/// dimension below 1, or more than kMaxElements elements.
std::int64_t elements_of(std::span<const std::int64_t> shape);

/// Checks a shape as elements_of() does. Also throws io::InputError if the shape has a different
/// number of elements from `elements`.
void check_shape(std::span<const std::int64_t> shape, std::int64_t elements);

/// Parses "64x3x7x7". Throws io::InputError if the format is different, or for the reasons that
/// elements_of() gives.
std::vector<std::int64_t> parse_shape(std::string_view text);

/// Formats a shape for parse_shape(): "64x3x7x7".
std::string format_shape(std::span<const std::int64_t> shape);

}  // namespace hipress::models
