#include "io/quantity.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>

#include "tests/io/temporary_folder.hpp"

using namespace hipress::io;
using hipress::tests::complaint;

TEST_CASE("bandwidths: bits are not bytes, and powers of ten are not powers of two") {
  CHECK(parse_bandwidth("100Gbps") == 12.5e9);     // 100e9 / 8
  CHECK(parse_bandwidth("100 Gbit/s") == 12.5e9);  // with a blank
  CHECK(parse_bandwidth("12.5GB/s") == 12.5e9);
  CHECK(parse_bandwidth("200Mbit/s") == 25e6);       // 200e6 / 8
  CHECK(parse_bandwidth("1GiB/s") == 1073741824.0);  // 2^30
  CHECK(parse_bandwidth("1e3kB/s") == 1e6);
  CHECK(parse_bandwidth(" 8bps ") == 1.0);
}

TEST_CASE("durations are the doubles nearest to what is written") {
  CHECK(parse_duration("5us") == 5e-6);
  CHECK(parse_duration("1.5 ms") == 1.5e-3);
  CHECK(parse_duration("20ns") == 20e-9);
  CHECK(parse_duration("100ps") == 100e-12);
  CHECK(parse_duration("3s") == 3.0);
  CHECK(parse_duration("2min") == 120.0);
  CHECK(parse_duration("0us") == 0.0);
}

TEST_CASE("sizes are whole bytes") {
  CHECK(parse_size("64KiB") == 65536);
  CHECK(parse_size("4MB") == 4000000);
  CHECK(parse_size("512B") == 512);
  CHECK(parse_size("1.1kB") == 1100);
  CHECK(parse_size("0.5KiB") == 512);
  CHECK(parse_size("0B") == 0);
  CHECK(parse_size("2TiB") == std::int64_t{1} << 41);
}

TEST_CASE("a quantity that is wrong is refused with what would be accepted") {
  SECTION("bandwidth without unit") {
    CHECK(
        complaint([] { parse_bandwidth("100", "link.bandwidth"); }) ==
        "link.bandwidth must be a bandwidth with unit, such as 100Gbps or 12.5GB/s (units: B/s, "
        "kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, bps, kbps, Mbps, Gbps, Tbps, bit/s, kbit/s, "
        "Mbit/s, Gbit/s, Tbit/s), got '100'");
  }
  SECTION("duration without unit") {
    CHECK(complaint([] { parse_duration("5"); }) ==
          "duration must be a duration with unit, such as 5us (units: ps, ns, us, ms, s, min), got "
          "'5'");
  }
  SECTION("a size for a bandwidth") {
    CHECK_THAT(complaint([] { parse_bandwidth("5GB"); }), Catch::EndsWith("got '5GB'"));
  }
  SECTION("a unit in the wrong case") {
    CHECK_THAT(complaint([] { parse_bandwidth("100gbps"); }), Catch::EndsWith("got '100gbps'"));
  }
  SECTION("no bandwidth at all") {
    CHECK(complaint([] { parse_bandwidth("0GB/s"); }) == "bandwidth must be positive, got '0GB/s'");
    CHECK(complaint([] { parse_bandwidth("-1GB/s"); }) ==
          "bandwidth must be positive, got '-1GB/s'");
  }
  SECTION("a negative duration") {
    CHECK(complaint([] { parse_duration("-1us"); }) ==
          "duration must be zero or positive, got '-1us'");
  }
  SECTION("what is not finite") {
    for (const char* text : {"infs", "nans", "1e999s", "1e308min"}) {
      CHECK_THAT(complaint([&] { parse_duration(text); }),
                 Catch::StartsWith("duration must be a duration with unit"));
    }
  }
  SECTION("nothing") {
    CHECK_THAT(complaint([] { parse_size(""); }), Catch::EndsWith("got ''"));
    CHECK_THAT(complaint([] { parse_size("KiB"); }), Catch::EndsWith("got 'KiB'"));
  }
  SECTION("part of a byte") {
    CHECK(complaint([] { parse_size("1.5B"); }) ==
          "size must be a whole number of bytes, got '1.5B'");
  }
  SECTION("more bytes than 64 bits count") {
    CHECK(complaint([] { parse_size("8388608TiB"); }) ==  // 2^23 * 2^40
          "size must be less than 2^63 bytes, got '8388608TiB'");
  }
  SECTION("control bytes and endless text do not reach the terminal") {
    CHECK_THAT(complaint([] { parse_size(std::string("1\x1bKiB", 5)); }),
               Catch::EndsWith("got '1\\x1bKiB'"));
    CHECK_THAT(complaint([] { parse_size(std::string(1000, 'x')); }),
               Catch::EndsWith("got '" + std::string(80, 'x') + "…'"));
  }
}

TEST_CASE("whole numbers") {
  CHECK(parse_integer("1000003", "elements", 1) == 1000003);
  CHECK(parse_integer("-5", "offset", -5) == -5);
  CHECK(parse_integer("9223372036854775807", "x", 0) == INT64_MAX);
  SECTION("below the least") {
    CHECK(complaint([] { parse_integer("-3", "elements", 1); }) ==
          "elements must be a positive integer, got '-3'");
    CHECK(complaint([] { parse_integer("-1", "x", 0); }) ==
          "x must be a non-negative integer, got '-1'");
    CHECK(complaint([] { parse_integer("1", "x", 2); }) ==
          "x must be an integer of at least 2, got '1'");
  }
  SECTION("above the most, also beyond 64 bits") {
    CHECK(complaint([] { parse_integer("11", "x", 0, 10); }) == "x must be at most 10, got '11'");
    CHECK(complaint([] { parse_integer("99999999999999999999", "x", 0, 10); }) ==
          "x must be at most 10, got '99999999999999999999'");
  }
  SECTION("no whole number") {
    for (const char* text : {"", "1.5", "1e3", "0x10", " 1", "1 ", "+1", "one", "1_000"}) {
      CHECK_THAT(complaint([&] { parse_integer(text, "x", 1); }),
                 Catch::StartsWith("x must be a positive integer, got '"));
    }
  }
}

TEST_CASE("minus nothing is nothing") {
  for (const std::string text : {"-0", "-0.0"}) {
    CAPTURE(text);
    CHECK_FALSE(std::signbit(parse_number(text, "x")));
    CHECK_FALSE(std::signbit(parse_duration(text + "s", "x")));
  }
  CHECK(parse_size("-0B", "x") == 0);
  CHECK(parse_integer("-0", "x", 0, 1) == 0);
}

TEST_CASE("plain numbers") {
  CHECK(parse_number("0.5", "tau") == 0.5);
  CHECK(parse_number("-1e-3", "tau") == -1e-3);
  for (const char* text : {"", "inf", "nan", "1e999", "0.5s", "half"}) {
    CHECK(complaint([&] { parse_number(text, "tau"); }) ==
          std::string("tau must be a finite number without unit, such as 0.5, got '") + text + "'");
  }
}

TEST_CASE("quantities are shown in the largest unit that keeps the number at least 1") {
  CHECK(format_duration(1.83e-3) == "1.83ms");
  CHECK(format_duration(0) == "0s");
  CHECK(format_duration(5e-6) == "5us");
  CHECK(format_duration(999.96e-6) == "1ms");  // rounds up to 1000us
  CHECK(format_duration(0.25e-12) == "0.25ps");
  CHECK(format_duration(-1.83e-3) == "-1.83ms");  // differences may be negative
  CHECK(format_duration(123456) == "123456s");    // no exponent
  CHECK(format_bandwidth(12.5e9) == "12.5GB/s");
  CHECK(format_bandwidth(0.5) == "0.5B/s");
  CHECK(format_size(65536) == "64KiB");
  CHECK(format_size(548 * 1024 * 1024) == "548MiB");
  CHECK(format_size(574656160) == "574.7MB");  // not whole in a binary unit
  CHECK(format_size(0) == "0B");
  CHECK(format_amount(548 * 1024 * 1024) == "574.6MB");  // always decimal
  CHECK(format_amount(65536) == "65.54kB");
  CHECK(format_bit_rate(3.125e9) == "25Gbit/s");
  CHECK(format_bit_rate(25e6) == "200Mbit/s");
  CHECK(parse_bandwidth(format_bit_rate(12.5e9)) == 12.5e9);
}

TEST_CASE("what is shown reads back") {
  for (const double seconds : {0.0, 3.228e-3, 1.0 / 3, 41.0 / 7e6, 7.3e-11, 5000.0}) {
    CHECK(parse_duration(format_duration(seconds)) == Approx(seconds).epsilon(5e-4));
    // 17 digits keep a double, except for two roundings by the unit's factor.
    CHECK(parse_duration(format_duration(seconds, 17)) == Approx(seconds).epsilon(1e-15));
  }
  for (const double bandwidth : {1.0, 12.5e9, 1e9 / 3, 3e13}) {
    CHECK(parse_bandwidth(format_bandwidth(bandwidth)) == Approx(bandwidth).epsilon(5e-4));
  }
  for (const std::int64_t bytes : {0, 1, 1000, 1023, 1024, 65536, 123456789}) {
    CHECK(static_cast<double>(parse_size(format_size(bytes))) ==
          Approx(static_cast<double>(bytes)).epsilon(5e-4));
  }
}
