// Tests algbw and busbw, which nccl-tests define in doc/PERFORMANCE.md.

#include "profiler/nccl_table.hpp"

#include <catch2/catch.hpp>
#include <sstream>
#include <utility>

namespace hipress::profiler {
namespace {

costs::Profile profile_with(const std::string& series, std::int64_t x, double median_s) {
  costs::Profile profile;
  profile.samples.push_back(
      {.name = series, .samples = {{.x = x, .median_s = median_s, .repetitions = 1}}});
  return profile;
}

TEST_CASE("busbw is what a link carries of each of nccl-tests' collectives") {
  CHECK(bus_factor("all_reduce", 8) == Approx(2 * 7.0 / 8));
  CHECK(bus_factor("all_reduce", 2) == 1);
  CHECK(bus_factor("gather", 4) == Approx(3.0 / 4));
  CHECK(bus_factor("scatter", 4) == Approx(3.0 / 4));
  CHECK(bus_factor("all_gather", 4) == Approx(3.0 / 4));
  CHECK(bus_factor("reduce_scatter", 4) == Approx(3.0 / 4));
  CHECK(bus_factor("alltoall", 4) == Approx(3.0 / 4));
  CHECK(bus_factor("sendrecv", 2) == 1);
  CHECK_THROWS_AS(bus_factor("alltoall_v", 2), std::invalid_argument);
}

TEST_CASE("an all-reduce of 64 MiB among 4 in 1 ms has the bandwidths of nccl-tests") {
  // algbw = 67108864 B / 1 ms = 67.11 GB/s; busbw = 2·3/4 of that = 100.66 GB/s.
  const auto rows = nccl_rows(profile_with("all_reduce.4", 1 << 26, 1e-3));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].test == "all_reduce");
  CHECK(rows[0].ranks == 4);
  CHECK(rows[0].algbw == Approx(67.108864e9));
  CHECK(rows[0].busbw == Approx(100.663296e9));
}

TEST_CASE("a collective of shards has the size of all of them") {
  // algbw = 4 MB / 1 ms = 4 GB/s; busbw = 3/4 of that.
  for (const auto& [series, test] :
       {std::pair("all_gather.4", "all_gather"), std::pair("reduce_scatter.4", "reduce_scatter"),
        std::pair("all_to_all.4", "alltoall")}) {
    const auto rows = nccl_rows(profile_with(series, 4000000, 1e-3));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].test == test);
    CHECK(rows[0].ranks == 4);
    CHECK(rows[0].algbw == Approx(4e9));
    CHECK(rows[0].busbw == Approx(3e9));
  }
}

TEST_CASE("a fan-in counts all ranks' bytes, and its busbw is what reaches the one") {
  // Three ranks send 1 MB each to a fourth: the size is 4 MB, of which 3 MB arrive in 1 ms: 3 GB/s.
  const auto rows = nccl_rows(profile_with("fan_in.4", 1000000, 1e-3));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].test == "gather");
  CHECK(rows[0].size_bytes == 4000000);
  CHECK(rows[0].algbw == Approx(4e9));
  CHECK(rows[0].busbw == Approx(3e9));
}

TEST_CASE("series that are no test of nccl-tests make no rows") {
  CHECK(nccl_rows(profile_with("onebit.encode", 1024, 1e-3)).empty());
  CHECK(nccl_rows(profile_with("link.hop", 1024, 1e-3)).empty());
  for (const char* const name :
       {"fan_in.x", "fan_out.", "all_reduce.2x", "all_reduce.99999999999", "link.all_to_all"}) {
    CHECK(nccl_rows(profile_with(name, 1024, 1e-3)).empty());
  }
  CHECK(nccl_rows(profile_with("link.both_ways", 1024, 1e-3)).front().test == "sendrecv");
}

TEST_CASE("the table has nccl-tests' columns and units") {
  std::ostringstream out;
  print_nccl_table(out, nccl_rows(profile_with("all_reduce.4", 1 << 26, 1e-3)));
  CHECK(out.str() ==
        "# all_reduce of 4 ranks\n"
        "#       size         count      type   redop      time    algbw    busbw\n"
        "#        (B)    (elements)                        (us)   (GB/s)   (GB/s)\n"
        "    67108864      16777216     float     sum   1000.00    67.11   100.66\n");
}

}  // namespace
}  // namespace hipress::profiler
