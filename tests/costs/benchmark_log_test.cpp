#include "costs/benchmark_log.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;
using tests::complaint;
using tests::TemporaryFolder;

const std::string kHead =
    "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor)\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   1 on     h1 device  0 [0x18] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   2 on     h2 device  0 [0x18] NVIDIA H100 80GB HBM3\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
const std::string kRows =
    "     1048576        262144     float     sum      -1    100.0   10.49   10.49      0    99.0\n"
    "     2097152        524288     float     sum      -1    150.0   13.98   13.98      0   149.0\n"
    "     4194304       1048576     float     sum      -1    350.0   11.98   11.98      0   "
    "349.0\n";
const std::string kTail = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.15\n";

TEST_CASE("a log of nccl-tests is read, whatever starts its lines") {
  const TemporaryFolder folder;
  const BenchmarkLog log =
      read_benchmark_log(folder.file("all_reduce_perf.log", kHead + kRows + kTail));
  CHECK(log.operation == Operation::kAllReduce);
  CHECK(log.ranks == 2);
  REQUIRE(log.rows.size() == 3);
  CHECK(log.rows[1] == std::pair<std::int64_t, double>{2097152, 150e-6});
  std::string prefixed;
  for (const char c : "# ./all_gather_perf -b 1M\n" + kHead + kRows + kTail) {
    if (prefixed.empty() || prefixed.back() == '\n') prefixed += "[1,0]<stdout>:";
    prefixed += c;
  }
  const BenchmarkLog gather = read_benchmark_log(folder.file("run.log", prefixed));
  CHECK(gather.operation == Operation::kAllGather);
  CHECK(gather.rows == log.rows);
  // Old logs have no column for the root, and those of rccl-tests none for the in-place error.
  const std::string old =
      "     1048576        262144   float     sum    100.0   10.49   10.49  2e-07\n";
  CHECK(read_benchmark_log(folder.file("alltoall_perf.txt", kHead + old + kTail)).rows[0].second ==
        Approx(100e-6));
}

TEST_CASE("a profile's curve goes through what was measured") {
  const TemporaryFolder folder;
  Profile profile;
  add_to_profile(read_benchmark_log(folder.file("all_reduce_perf.log", kHead + kRows + kTail)),
                 profile);
  const Curve& curve = profile.all_reduce.at(2);
  CHECK(curve(1048576) == Approx(100e-6));
  CHECK(curve(4194304) == Approx(350e-6));
  // Half-way between 1 and 2 MiB, and beyond the last point.
  CHECK(curve(1048576 + 524288) == Approx(125e-6));
  CHECK(curve(6291456) == Approx(550e-6));
}

TEST_CASE("logs that were cut short or say too little are refused") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text, const std::string& name = "all_reduce.log") {
    return complaint([&] { read_benchmark_log(folder.file(name, text)); });
  };
  const std::string test = "# all_reduce_perf\n";
  CHECK_THAT(refusal(test + kHead + kRows), Contains("all_reduce.log:9: ends without '# Avg bus"));
  CHECK_THAT(refusal(kHead + kRows + kTail), Contains("names no known test"));
  CHECK_THAT(refusal(test + kHead + kTail), Contains("has no rows of all_reduce_perf"));
  CHECK_THAT(refusal(test + kRows + kTail), Contains("does not list two ranks"));
  CHECK_THAT(refusal(test + kHead + "1048576 262144 float sum -1 100.0 99.9 0.0 0\n" + kTail),
             Contains("all_reduce.log:7: a row of nccl-tests has size"));
}

TEST_CASE("OSU's collectives are read, in bytes as nccl-tests counts them") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& name, std::optional<int> ranks) {
    return read_benchmark_log(
        folder.file("osu.log",
                    "# OSU MPI-CUDA " + name +
                        " Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size       Avg "
                        "Latency(us)   Min Latency(us)\n1024   20.5  19.0\n1048576  310.25 300\n"),
        ranks);
  };
  const BenchmarkLog reduced = read("Allreduce", 16);
  CHECK(reduced.operation == Operation::kAllReduce);
  CHECK(reduced.ranks == 16);
  REQUIRE(reduced.rows.size() == 2);
  CHECK(reduced.rows[1].first == 1048576);
  CHECK(reduced.rows[1].second == Approx(310.25e-6));
  // OSU's size is one rank's share for Allgather, and the bytes for one rank for All-to-All: it is
  // multiplied by the number of ranks.
  CHECK(read("Allgather", 16).rows[0].first == 16 * 1024);
  CHECK(read("All-to-All Personalized Exchange", 4).rows[0].first == 4 * 1024);
  CHECK(read("Reduce_scatter", 4).rows[0].first == 1024);
  CHECK_THAT(complaint([&] { read("Allreduce", {}); }),
             Contains("osu.log:1: OSU's Allreduce does not give the number of ranks"));
  CHECK_THAT(complaint([&] { read("Allgatherv", 4); }), Contains("is not supported"));
}

TEST_CASE("bandwidth and latency between two ranks become the link's") {
  const TemporaryFolder folder;
  Profile profile;
  profile.link.overhead_s = 1e-6;
  const auto add = [&](const std::string& text) {
    add_to_profile(read_benchmark_log(folder.file("link.log", text)), profile);
  };
  add("# OSU MPI Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n1   2.5\n4194304  12250.5\n");
  CHECK(profile.link.bandwidth == Approx(12250.5e6));
  CHECK(profile.link.bandwidth_both_ways == Approx(12250.5e6));
  add("# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n0   1.5\n8   3.5\n");
  CHECK(profile.link.latency_s == Approx(2.5e-6));
  // perftest's MB are 2^20 bytes: 5544.28 of them are 5.677340 million messages of 1024 bytes.
  const std::string head = "                    Send BW Test\n Dual-port       : OFF\n";
  add(head +
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
      " 1024       1000             0.00               5544.28             5.677340\n");
  CHECK(profile.link.bandwidth == Approx(1024 * 5.677340e6).epsilon(1e-5));
  add(head +
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 65536      5000             380.1               376.5             0.7\n");
  CHECK(profile.link.bandwidth == Approx(376.5e9 / 8));
  add("                    RDMA_Write Latency Test\n"
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n"
      " 2       1000          0.70           3.79         0.75              0.78\n");
  CHECK(profile.link.overhead_s == Approx(0.75e-6));
  CHECK(profile.link.latency_s == Approx(0).margin(1e-12));
  CHECK_THAT(complaint([&] { add("#bytes #iterations  MsgRate[Mpps]\n"); }),
             Contains("link.log:1: perftest's columns have no"));
  CHECK_THAT(complaint([&] { add("# OSU MPI Bandwidth Test v5.9\n1 nan\n"); }),
             Contains("link.log:2: a row of osu_bw"));
}

}  // namespace
}  // namespace hipress::costs
