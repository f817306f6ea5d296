#include "costs/gloo_model.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "costs/collective_model.hpp"
#include "costs/machine_options.hpp"
#include "io/error.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;

constexpr double kMiB = 1 << 20;

Machine with_gloo(const std::string& name) {
  Machine machine = read_machine(name);
  use_library("gloo", machine);
  return machine;
}

CollectiveWay way(Ranks ranks, double bytes, Operation operation = Operation::kAllReduce,
                  const std::string& algorithm = {}) {
  return collective_time(with_gloo("desktop"), ranks, operation, bytes, algorithm);
}

TEST_CASE("the ring is what Gloo takes at any size, by TCP") {
  for (const double bytes : {4.0, kMiB, 1024 * kMiB}) {
    INFO(bytes);
    CHECK(way({4, 4}, bytes).algorithm == "ring");
    CHECK(way({4, 4}, bytes).protocol == "TCP");
  }
  // TCP reaches 94 % of 8 cards of 400 Gbit/s, with a latency of 25 us.
  const Machine machine = with_gloo("hgx-h100");
  CHECK(machine.host_bandwidth() == Approx(8 * 50e9 * 0.94));
  CHECK(machine.network_latency_s == 25e-6);
  CHECK(with_gloo("nc24s-v3").network_share <= 0.94);
}

TEST_CASE("a ring of Gloo's passes chunks on in segments, two of which are under way") {
  // 4 hosts, each with a card of 1 Gbit/s at 94 % (117.5 MB/s), a latency of 25 us, and 20 us per
  // message. 16 MiB are chunks of 4 MiB in 4 segments. In each of 2 · 3 rounds the card is busy for
  // 4 · (20 us + 1 MiB / 117.5 MB/s), which is longer than the chain of messages takes.
  const double busy_s = 20e-6 + kMiB / 117.5e6;
  CHECK(way({4, 4}, 16 * kMiB).seconds == Approx(60e-6 + 6 * 4 * busy_s));
  // 4 bytes: in each of 6 rounds a message takes 20 + 25 us, and half a byte 4 ns at 117.5 MB/s.
  CHECK(way({4, 4}, 4).seconds == Approx(60e-6 + 6 * 45e-6).epsilon(1e-3));
  // An all-gather has half of an all-reduce's rounds: 3.
  CHECK(way({4, 4}, 16 * kMiB, Operation::kAllGather).seconds == Approx(60e-6 + 3 * 4 * busy_s));
}

TEST_CASE("halving and doubling takes two messages a power of two, and more for other numbers") {
  const auto halving_s = [](Ranks ranks, double bytes) {
    return way(ranks, bytes, Operation::kAllReduce, "halving_doubling").seconds;
  };
  // 4 hosts: halves, then quarters, are sent, summed at 5 GB/s, and sent back.
  const double bytes = 16 * kMiB, message_s = 45e-6;
  CHECK(halving_s({4, 4}, bytes) ==
        Approx(60e-6 + 4 * message_s + 2 * 0.75 * bytes / 117.5e6 + 0.75 * bytes / 5e9));
  // A fifth rank sends everything to one of them, and gets the result back.
  CHECK(halving_s({5, 5}, bytes) ==
        Approx(halving_s({4, 4}, bytes) + 2 * (message_s + bytes / 117.5e6)));
  // For small messages, 4 steps are faster than the ring's 6.
  CHECK(halving_s({4, 4}, 4) < way({4, 4}, 4).seconds);
  CHECK(way({4, 4}, bytes, Operation::kReduceScatter).algorithm == "halving");
}

TEST_CASE("ranks of a host use its card only at the ends of their ring") {
  // 2 hosts of 8 GPUs: in each of 15 rounds a message crosses a host's card. Its connection reaches
  // 2.5 GB/s, like one within a host.
  const double segment = kMiB, busy_s = 20e-6 + segment / 2.5e9;
  const CollectiveWay ring =
      collective_time(with_gloo("hgx-h100"), {2, 16}, Operation::kAllReduce, 16 * kMiB * 4);
  CHECK(ring.seconds == Approx(60e-6 + 2 * 15 * 4 * busy_s));
  CHECK(ring.within == 0);
  // A host sends 2 · 15/16 of the bytes, over cards of 8 · 47 GB/s.
  CHECK(ring.between == Approx(2 * 15.0 / 16 * 64 * kMiB / 376e9 / ring.seconds));
}

TEST_CASE("a request or a cluster file names the library of a machine's collectives") {
  const tests::TemporaryFolder folder;
  const std::string file =
      folder.file("c.yaml", "machine: desktop\nhosts: 4\nlibrary: gloo\nrack: {hosts: 2}\n");
  const LoadedMachines said = load({.cluster = file}, 0, 4);
  const LoadedMachines asked = load({.machine = "desktop", .hosts = 4, .library = "gloo"}, 0, 4);
  CHECK(said.profile.machine->library == Library::kGloo);
  CHECK(asked.profile.machine == said.profile.machine);
  CHECK(asked.cluster.link.bandwidth == Approx(117.5e6));
  CHECK_THAT(tests::complaint([] { load({.machine = "desktop", .library = "glo"}, 0, 4); }),
             Contains("`library`: unknown 'glo'; did you mean 'gloo'? (known: nccl, gloo)"));
  CHECK_THAT(tests::complaint([] { load({.library = "gloo"}, 0, 4); }),
             Contains("`library` is of the collectives on a `machine`: name one"));
}

}  // namespace
}  // namespace hipress::costs
