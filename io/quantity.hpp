#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hipress::io {

// Parses and formats quantities with units. 1 GB = 1e9 B, 1 GiB = 2^30 B, 1 bit = 1/8 B. Blanks are
// allowed around the unit ("100 Gbps"). Parsers throw an InputError that quotes the text and lists
// the accepted units; callers add file and line. `what` names the quantity in it: "latency must be
// …, got '5'".
//
//     const double bytes_per_s = parse_bandwidth("100Gbps");     // 1.25e10
//     const double seconds = parse_duration("5us", "latency");   // 5e-6
//     const std::string text = format_bandwidth(bytes_per_s);    // "12.5GB/s"

/// Bytes per second of "100Gbps", "12.5GB/s", "200Mbit/s", "1GiB/s" …; positive and finite.
double parse_bandwidth(std::string_view text, std::string_view what = "bandwidth");

/// Seconds of "5us", "1.5 ms", "20ns", "3s", "100ps", "2min"; non-negative and finite.
double parse_duration(std::string_view text, std::string_view what = "duration");

/// Bytes of "64KiB", "4MB", "512B" …; a whole, non-negative number.
std::int64_t parse_size(std::string_view text, std::string_view what = "size");

/// An integer without unit ("1000003") from `least` to `most`. `what` names it in the error:
/// "elements must be a positive integer, got '-3'".
std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t least,
                           std::int64_t most = INT64_MAX);

/// A finite decimal number ("0.5", "1e-3"). `what` names it in the error.
double parse_number(std::string_view text, std::string_view what);

// Formatters use the largest unit in which the number is at least 1 ("12.5GB/s", "1.83ms"), and
// `digits` significant digits. Parsers accept the text; 17 digits restore a double.
std::string format_bandwidth(double bytes_per_s, int digits = 4);
std::string format_duration(double seconds, int digits = 4);

/// Formats a limit or threshold, which users mostly give in binary units: in the largest binary
/// unit in which the number is whole ("548MiB"), otherwise in a decimal unit ("574.7MB").
std::string format_size(std::int64_t bytes, int digits = 4);

// Reports use one system of units per kind of amount: decimal for sizes, bits per second for links
// between machines, bytes per second for all other rates.

/// Formats a size in decimal units, such as "574.7MB".
std::string format_amount(std::int64_t bytes, int digits = 4);

/// Formats a rate in bits per second, such as "25Gbit/s"; the argument is in bytes per second.
std::string format_bit_rate(double bytes_per_s, int digits = 4);

}  // namespace hipress::io
