#include "costs/exact_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "io/quantity.hpp"

namespace hipress::costs {
namespace {

/// Shortest text of format() that `parse` reads back to exactly `value`; in the base unit if
/// scaling to a larger one loses the last bit.
template <typename Format, typename Parse>
std::string exact(double value, std::string_view base_unit, Format format, Parse parse) {
  // Values that `parse` refuses are written as they are: the reader's error then names the key.
  if (!std::isfinite(value) || value <= 0) return fmt::format("{}{}", value, base_unit);
  constexpr int kReadable = 12;
  for (int digits = 1; digits <= kReadable; ++digits) {
    const std::string text = format(value, digits);
    if (parse(text, "value") == value) return text;
  }
  return fmt::format("{}{}", value, base_unit);
}

}  // namespace

std::string exact_duration(double seconds) {
  return exact(seconds, "s", io::format_duration, io::parse_duration);
}

std::string exact_bandwidth(double bytes_per_s) {
  return exact(bytes_per_s, "B/s", io::format_bandwidth, io::parse_bandwidth);
}

}  // namespace hipress::costs
