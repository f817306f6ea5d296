#include "costs/nccl_log.hpp"

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
  const NcclLog log = read_nccl_log(folder.file("all_reduce_perf.log", kHead + kRows + kTail));
  CHECK(log.operation == Operation::kAllReduce);
  CHECK(log.ranks == 2);
  REQUIRE(log.times.size() == 3);
  CHECK(log.times[1] == std::pair<std::int64_t, double>{2097152, 150e-6});
  std::string prefixed;
  for (const char c : "# ./all_gather_perf -b 1M\n" + kHead + kRows + kTail) {
    if (prefixed.empty() || prefixed.back() == '\n') prefixed += "[1,0]<stdout>:";
    prefixed += c;
  }
  const NcclLog gather = read_nccl_log(folder.file("run.log", prefixed));
  CHECK(gather.operation == Operation::kAllGather);
  CHECK(gather.times == log.times);
  // Older versions have no root, and rccl-tests no in-place error.
  const std::string old =
      "     1048576        262144   float     sum    100.0   10.49   10.49  2e-07\n";
  CHECK(read_nccl_log(folder.file("alltoall_perf.txt", kHead + old + kTail)).times[0].second ==
        Approx(100e-6));
}

TEST_CASE("a profile's curve goes through what was measured") {
  const TemporaryFolder folder;
  Profile profile;
  add_to_profile(read_nccl_log(folder.file("all_reduce_perf.log", kHead + kRows + kTail)), profile);
  const Curve& curve = profile.all_reduce.at(2);
  CHECK(curve(1048576) == Approx(100e-6));
  CHECK(curve(4194304) == Approx(350e-6));
  // Half-way between 1 and 2 MiB, and as far behind the last point as it lies before it.
  CHECK(curve(1048576 + 524288) == Approx(125e-6));
  CHECK(curve(6291456) == Approx(550e-6));
}

TEST_CASE("logs that were cut short or say too little are refused") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text, const std::string& name = "all_reduce.log") {
    return complaint([&] { read_nccl_log(folder.file(name, text)); });
  };
  const std::string test = "# all_reduce_perf\n";
  CHECK_THAT(refusal(test + kHead + kRows), Contains("all_reduce.log:9: ends without '# Avg bus"));
  CHECK_THAT(refusal(kHead + kRows + kTail), Contains("says of no test that is read"));
  CHECK_THAT(refusal(test + kHead + kTail), Contains("has no rows of nccl-tests"));
  CHECK_THAT(refusal(test + kRows + kTail), Contains("does not list two ranks"));
  CHECK_THAT(refusal(test + kHead + "1048576 262144 float sum -1 100.0 99.9 0.0 0\n" + kTail),
             Contains("all_reduce.log:7: a row of nccl-tests has size"));
}

}  // namespace
}  // namespace hipress::costs
