#include "io/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <system_error>

#include "io/error.hpp"

namespace hipress::io {
namespace {

/// A unit of `times / over` base units. Both are exact doubles, so "5us" becomes the double nearest
/// to 5e-6.
struct Unit {
  std::string_view name;
  double times = 1;
  double over = 1;
};

constexpr double kKi = 1024;

// In ascending order, which format() requires; units that are only parsed come last.
constexpr Unit kDurations[] = {{"ps", 1, 1e12}, {"ns", 1, 1e9}, {"us", 1, 1e6},
                               {"ms", 1, 1e3},  {"s"},          {"min", 60}};
constexpr std::size_t kFormattedDurations = 5;

constexpr Unit kSizes[] = {{"B"},
                           {"kB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12},
                           {"KiB", kKi},
                           {"MiB", kKi* kKi},
                           {"GiB", kKi* kKi* kKi},
                           {"TiB", kKi* kKi* kKi* kKi}};
constexpr std::size_t kDecimalSizes = 5;

constexpr Unit kBandwidths[] = {{"B/s"},
                                {"kB/s", 1e3},
                                {"MB/s", 1e6},
                                {"GB/s", 1e9},
                                {"TB/s", 1e12},
                                {"KiB/s", kKi},
                                {"MiB/s", kKi* kKi},
                                {"GiB/s", kKi* kKi* kKi},
                                {"bps", 1, 8},
                                {"kbps", 1e3, 8},
                                {"Mbps", 1e6, 8},
                                {"Gbps", 1e9, 8},
                                {"Tbps", 1e12, 8},
                                {"bit/s", 1, 8},
                                {"kbit/s", 1e3, 8},
                                {"Mbit/s", 1e6, 8},
                                {"Gbit/s", 1e9, 8},
                                {"Tbit/s", 1e12, 8}};
constexpr std::size_t kFormattedBandwidths = 5;  // those in bytes, which come first

/// A kind of quantity: its units, and its description in messages.
struct Dimension {
  std::string_view description;
  std::span<const Unit> units;
};

constexpr Dimension kDuration{"a duration with unit, such as 5us", kDurations};
constexpr Dimension kSize{"a size with unit, such as 64KiB", kSizes};
constexpr Dimension kBandwidth{"a bandwidth with unit, such as 100Gbps or 12.5GB/s", kBandwidths};

[[noreturn]] void refuse(std::string_view what, std::string_view must_be, std::string_view text) {
  throw InputError(fmt::format("{} must be {}, got {}", what, must_be, quote(text)));
}

/// Description of accepted texts: "a duration with unit, such as 5us (units: ps, ns, …)".
std::string accepted(const Dimension& dimension) {
  std::string names;
  for (const Unit& unit : dimension.units) {
    names += (names.empty() ? "" : ", ") + std::string(unit.name);
  }
  return fmt::format("{} (units: {})", dimension.description, names);
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Parses a value of any sign into base units (seconds, bytes, bytes per second).
double parse(std::string_view text, std::string_view what, const Dimension& dimension) {
  const std::string_view trimmed = trim(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (error == std::errc() && std::isfinite(number)) {
    const std::string_view name =
        trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
    for (const Unit& unit : dimension.units) {
      const double value = number * unit.times / unit.over;
      if (unit.name == name && std::isfinite(value)) return value + 0.0;  // -0 is 0
    }
  }
  refuse(what, accepted(dimension), text);
}

/// Formats `value` in the largest of the ascending `units` in which it is at least 1 after
/// rounding.
std::string format(double value, std::span<const Unit> units, int digits) {
  const double rounded_to_one = 1 - 0.5 * std::pow(10.0, -digits);
  const auto in = [&](const Unit& unit) { return value * unit.over / unit.times; };
  std::size_t i = units.size() - 1;
  while (i > 0 && std::abs(in(units[i])) < rounded_to_one) --i;
  const double number = in(units[i]);
  // If the integer part has more than `digits` digits, format g would switch to an exponent.
  const bool general = std::abs(number) < std::pow(10.0, digits);
  return (general ? fmt::format("{:.{}g}", number, digits) : fmt::format("{:.0f}", number)) +
         std::string(units[i].name);
}

}  // namespace

double parse_bandwidth(std::string_view text, std::string_view what) {
  const double value = parse(text, what, kBandwidth);
  if (value <= 0) refuse(what, "positive", text);
  return value;
}

double parse_duration(std::string_view text, std::string_view what) {
  const double value = parse(text, what, kDuration);
  if (value < 0) refuse(what, "zero or positive", text);
  return value;
}

std::int64_t parse_size(std::string_view text, std::string_view what) {
  const double value = parse(text, what, kSize);
  if (value < 0) refuse(what, "zero or positive", text);
  if (value >= 0x1p63) refuse(what, "less than 2^63 bytes", text);
  const double whole = std::nearbyint(value);
  // 1.1kB must be 1100 bytes, although neither 1.1 nor the product is exact.
  if (std::abs(value - whole) > 1e-15 * value) refuse(what, "a whole number of bytes", text);
  return static_cast<std::int64_t>(whole);
}

std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t least,
                           std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && !text.empty();
  const bool too_large = error == std::errc::result_out_of_range && whole && text.front() != '-';
  if (too_large || (error == std::errc() && whole && value > most)) {
    refuse(what, fmt::format("at most {}", most), text);
  }
  if (error != std::errc() || !whole || value < least) {
    refuse(what,
           least == 1   ? "a positive integer"
           : least == 0 ? "a non-negative integer"
                        : fmt::format("an integer of at least {}", least),
           text);
  }
  return value;
}

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    refuse(what, "a finite number without unit, such as 0.5", text);
  }
  return value + 0.0;  // -0 is 0
}

std::string format_bandwidth(double bytes_per_s, int digits) {
  return format(bytes_per_s, std::span(kBandwidths).first(kFormattedBandwidths), digits);
}

std::string format_duration(double seconds, int digits) {
  if (seconds == 0) return "0s";
  return format(seconds, std::span(kDurations).first(kFormattedDurations), digits);
}

std::string format_size(std::int64_t bytes, int digits) {
  for (const Unit& unit : std::span(kSizes).subspan(kDecimalSizes)) {
    const auto unit_bytes = static_cast<std::int64_t>(unit.times);
    if (bytes >= unit_bytes && bytes % unit_bytes == 0 && bytes / unit_bytes < 1024) {
      return fmt::format("{}{}", bytes / unit_bytes, unit.name);
    }
  }
  return format_amount(bytes, digits);
}

std::string format_amount(std::int64_t bytes, int digits) {
  return format(static_cast<double>(bytes), std::span(kSizes).first(kDecimalSizes), digits);
}

std::string format_bit_rate(double bytes_per_s, int digits) {
  return format(bytes_per_s, std::span(kBandwidths).last(kFormattedBandwidths), digits);
}

}  // namespace hipress::io
