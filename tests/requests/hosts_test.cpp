#include "requests/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "requests/plan.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress;
using namespace hipress::requests;
using Catch::Contains;
using Catch::StartsWith;
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

HostsAnswer compare(PlanRequest request, std::vector<std::uint32_t> hosts = {1, 2}) {
  request.hosts = std::move(hosts);
  return compare_hosts(request, {});
}

PlanRequest read_request(const std::string& json) {
  PlanRequest request;
  read(io::Document::parse(json, "request"), fields(request));
  return request;
}

}  // namespace

TEST_CASE("numbers of hosts are one, a list, or a text with commas") {
  using Numbers = std::vector<std::uint32_t>;
  CHECK(read_request(R"({"hosts": 4})").hosts == Numbers{4});
  CHECK(read_request(R"({"hosts": 4})").machines().hosts == 4);
  CHECK(read_request(R"({"hosts": [1, 2, 16]})").hosts == Numbers{1, 2, 16});
  CHECK(read_request(R"({"hosts": "1,2, 16"})").hosts == Numbers{1, 2, 16});
  for (const char* bad : {"0", "[0]", "[1, 2.5]", "\"1,x\"", "\"1,,2\"", "true", "[\"1\"]"}) {
    INFO(bad);
    CHECK_THAT(complaint([&] { read_request(fmt::format(R"({{"hosts": {}}})", bad)); }),
               Contains("hosts"));
  }
  for (const Numbers& bad : {Numbers{2, 1}, Numbers{2, 2}}) {
    CHECK_THAT(complaint([&] { compare(bert_on("p3.16xlarge"), bad); }),
               Contains("`hosts` must be numbers in ascending order"));
  }
}

TEST_CASE("fields beside several hosts are used, or refused with the reason") {
  const auto refusal = [](const std::string& field) {
    return complaint([&] {
      answer(read_request(R"({"input": "bert_base", "machine": "p3.16xlarge", "batch": 8,
                              "hosts": [1, 2], )" +
                          field + "}"),
             {});
    });
  };
  for (const char* field :
       {R"("topology": "RING")", R"("algorithm": "onebit")", R"("nnodes": 4)",
        R"("output": "plan.yaml")", R"("advise": true)", R"("budget": 1)", R"("job": "broadcast")",
        R"("required_bandwidth": true)", R"("explain": true)"}) {
    INFO(field);
    CHECK_THAT(refusal(field), Contains("several `hosts`") && Contains("leave it out"));
  }
  CHECK_THAT(refusal(R"("schedule": ["ddp", "fsdp"])"),
             Contains("`schedule` needs one number of hosts"));
  CHECK_THAT(refusal(R"x("schedule": "local(steps=10)")x"), Contains("`today` names other plans"));
  CHECK_THAT(refusal(R"("schedule": "ddp", "today": "ddp_fp16")"), Contains("leave one of them"));
  CHECK_THAT(refusal(R"("gpus": 8)"), Contains("`gpus`"));
  CHECK(refusal(R"("today": "ddp_fp16", "page": true, "network": "fair", "gpu_memory": "80GB",
                    "activation_memory": "2GB", "optimizer": "sgd")") == "no InputError");
  PlanRequest nowhere = bert_on("");
  CHECK_THAT(complaint([&] { compare(nowhere); }), Contains("`hosts` needs a `machine`"));
}

TEST_CASE("a job's memory is counted, and compared with a GPU's") {
  // Published in torchtitan's docs/performance.md: Llama 3.1 8B takes 82.4 GiB with FSDP on 8 H100
  // of 96 GB, selective checkpoints and batch 2.
  PlanRequest request;
  request.request.input = "llama3_8b";
  request.request.machines.machine = "p5.48xlarge";
  request.request.times.batch = 2;
  request.request.times.seq = 8192;
  request.request.times.dtype = "mixed";
  request.request.times.checkpoint = "selective";
  request.schedules = {"fsdp"};
  const HostsAnswer crowded = compare(request);
  const HostsRow& one = crowded.rows[0];
  CHECK(static_cast<double>(one.memory_bytes()) == Approx(82.4 * (1 << 30)).epsilon(0.12));
  CHECK(one.memory_bytes() > crowded.rows[1].memory_bytes());  // the shards of 16 GPUs are smaller
  CHECK(crowded.gpu_memory_bytes == 80'000'000'000);
  CHECK_FALSE(crowded.fits(one));
  CHECK_THAT(crowded.sentence,
             StartsWith("on 1 host it does not fit: ") && Contains("of a GPU's 80GB") &&
                 Contains("of them activations, which `checkpoint` full or a smaller `batch`"));
  const auto twice = std::ranges::find(crowded.changes, std::string("twice the batch of a GPU"),
                                       &HostsChange::what);
  REQUIRE(twice != crowded.changes.end());
  CHECK_FALSE(twice->fits);
  CHECK_THAT(crowded.sentence, !Contains("twice the batch"));
  request.gpu_memory = "96GB";
  CHECK(compare(request).fits(one));
  request.gpu_memory.clear();
  request.request.times.checkpoint = "full";
  const HostsAnswer roomy = compare(request);
  CHECK(roomy.fits(roomy.rows[0]));
  CHECK_THAT(roomy.sentence, StartsWith("more hosts pay"));
}

TEST_CASE("a slow network does not pay for more hosts, a fast one does") {
  // The slow network has 25 Gbit/s between hosts of 8 V100, as in pytorch issue 36298. The fast one
  // has 8 cards of 400 Gbit/s per host.
  const HostsAnswer slow = compare(bert_on("p3.16xlarge"));
  REQUIRE(slow.rows.size() == 2);
  CHECK(slow.rows[1].gpus == 16);
  CHECK(slow.rows[1].added < 0.5);
  CHECK(slow.rows[1].exposed_s() > 0.1 * slow.rows[1].iteration_s);
  CHECK_THAT(slow.sentence, Contains("more than 1 host do not pay") &&
                                Contains("on 2 the job is bound by the network"));
  CHECK(slow.rows[0].bound_by == "computation");
  CHECK(slow.rows[1].bound_by == "the network");
  CHECK(slow.rows[1].efficiency == Approx(slow.rows[1].units_per_s / 2 / slow.rows[0].units_per_s));
  REQUIRE_FALSE(slow.changes.empty());
  CHECK(slow.changes.front().speedup > 1.2);
  const HostsAnswer fast = compare(bert_on("hgx-h100"));
  CHECK(fast.rows[1].added > slow.rows[1].added);
  // Throughput: 8 sequences of 512 tokens on each of 16 GPUs, divided by the step's time.
  const HostsRow& row = fast.rows[1];
  CHECK(row.units_per_s == Approx(8 * 512 * 16 / row.iteration_s));
  CHECK(row.added ==
        Approx((row.units_per_s - fast.rows[0].units_per_s) / fast.rows[0].units_per_s));
  CHECK(fast.unit == "tokens");
}

TEST_CASE("several numbers of hosts leave out their GPUs") {
  PlanRequest request = bert_on("hgx-h100");
  request.request.machines.gpus = 8;
  CHECK_THAT(complaint([&] { compare(request); }), Contains("`gpus`"));
}
