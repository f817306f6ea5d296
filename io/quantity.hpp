#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hipress::io {

// Quantities with units, parsed here and nowhere else. 1 GB = 1e9 B, 1 GiB = 2^30 B, bits are not
// bytes. Each parser accepts optional blanks between number and unit ("100 Gbps"), and throws
// InputError whose message quotes the text and lists the accepted units; callers add file and line.
// `what` names the quantity in that message: "latency must be …, got '5'".

/// Bytes per second from "100Gbps", "12.5GB/s", "200Mbit/s", "1GiB/s" …; must be positive and
/// finite.
double parse_bandwidth(std::string_view text, std::string_view what = "bandwidth");

/// Seconds from "5us", "1.5 ms", "20ns", "3s", "100ps", "2min"; must be non-negative and finite.
double parse_duration(std::string_view text, std::string_view what = "duration");

/// Bytes from "64KiB", "4MB", "512B" …; must be a whole, non-negative number of bytes.
std::int64_t parse_size(std::string_view text, std::string_view what = "size");

/// A whole number without unit and nothing behind it ("1000003"), between least and most.
/// `what` names it in the error: "elements must be a positive integer, got '-3'".
std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t least,
                           std::int64_t most = INT64_MAX);

/// A plain finite decimal number ("0.5", "1e-3"), with `what` naming it in the error.
double parse_number(std::string_view text, std::string_view what);

// These write a quantity in the largest unit that keeps the number at least 1 ("12.5GB/s",
// "1.83ms"), with the given number of significant digits. The parsers above read it back to within
// these digits. 17 digits keep every bit of a double.
std::string format_bandwidth(double bytes_per_s, int digits = 4);
std::string format_duration(double seconds, int digits = 4);

/// "548MiB" where a binary unit comes out whole, otherwise decimal: "574.7MB". For limits and
/// thresholds, which people give so.
std::string format_size(std::int64_t bytes, int digits = 4);

// Reports show amounts side by side, so each kind of amount has one system of units: sizes are
// decimal, links between machines are in bits per second, as networks are named, and all other
// rates are in bytes per second.

/// Decimal always: "574.7MB".
std::string format_amount(std::int64_t bytes, int digits = 4);

/// "25Gbit/s" of bytes per second.
std::string format_bit_rate(double bytes_per_s, int digits = 4);

}  // namespace hipress::io
