#include "requests/hosts.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "tests/io/temporary_folder.hpp"

using namespace hipress;
using namespace hipress::requests;
using Catch::Contains;
using hipress::tests::complaint;

namespace {

PlanRequest bert_on(const char* machine) {
  PlanRequest request;
  request.request.input = "bert_base";
  request.request.machines.machine = machine;
  request.request.times.batch = 8;
  request.request.times.seq = 512;
  request.request.times.dtype = "mixed";
  return request;
}

}  // namespace

TEST_CASE("numbers of hosts ascend") {
  CHECK(parse_hosts("4") == std::vector<std::uint32_t>{4});
  CHECK(parse_hosts("1,2, 16") == std::vector<std::uint32_t>{1, 2, 16});
  for (const char* bad : {"2,1", "2,2", "0,1", "1,x", "1,,2"}) {
    CHECK_THAT(complaint([&] { parse_hosts(bad); }), Contains("`hosts`"));
  }
}

TEST_CASE("a slow network does not pay for more hosts, a fast one does") {
  // 25 Gbit/s between hosts of 8 V100, as in pytorch 36298; and 8 cards of 400 Gbit/s.
  const HostsAnswer slow = compare_hosts(bert_on("p3.16xlarge"), {1, 2}, {});
  REQUIRE(slow.rows.size() == 2);
  CHECK(slow.rows[1].gpus == 16);
  CHECK(slow.rows[1].added < 0.5);
  CHECK(slow.rows[1].exposed_s() > 0.1 * slow.rows[1].iteration_s);
  CHECK_THAT(slow.sentence, Contains("more than 1 host do not pay") && Contains("the network"));
  REQUIRE_FALSE(slow.changes.empty());
  CHECK(slow.changes.front().speedup > 1.2);
  const HostsAnswer fast = compare_hosts(bert_on("hgx-h100"), {1, 2}, {});
  CHECK(fast.rows[1].added > slow.rows[1].added);
  // Throughput is tokens of all GPUs over the step.
  const HostsRow& row = fast.rows[1];
  CHECK(row.units_per_s == Approx(8 * 512 * 16 / row.iteration_s));
  CHECK(row.added ==
        Approx((row.units_per_s - fast.rows[0].units_per_s) / fast.rows[0].units_per_s));
  CHECK(fast.unit == "tokens");
}

TEST_CASE("several numbers of hosts leave out their GPUs") {
  PlanRequest request = bert_on("hgx-h100");
  request.request.machines.gpus = 8;
  CHECK_THAT(complaint([&] { compare_hosts(request, {1, 2}, {}); }), Contains("`gpus`"));
}
