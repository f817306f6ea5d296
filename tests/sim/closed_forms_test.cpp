#include <algorithm>
#include <catch2/catch.hpp>

#include "casync/graph_builder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::GraphBuilder;
using casync::Kind;
using casync::kRaw;
using casync::Task;
using casync::TaskId;

/// Node 0 broadcasts a gradient in chunks along a chain of nodes: raw, or encoded once, forwarded,
/// and decoded by every node. A chunk has `elements` elements, and `bytes` bytes on the wire.
casync::TaskGraph chain_broadcast(std::uint32_t nodes, std::uint32_t chunks, std::int64_t elements,
                                  std::int64_t bytes, std::int8_t algorithm) {
  GraphBuilder builder(nodes);
  const auto behind = [&](TaskId before, const Task& task) {
    const TaskId id = builder.add(task);
    builder.edge(before, id);
    return id;
  };
  const TaskId ready = builder.add({.node = 0, .kind = Kind::kBackward});
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    Task codes{.amount = elements, .partition = chunk, .algorithm = algorithm};
    Task moves{.amount = bytes, .partition = chunk, .peer_offset = 1, .algorithm = algorithm};
    TaskId message = ready;
    if (algorithm != kRaw) {
      codes.kind = Kind::kEncode;
      message = behind(ready, codes);
      codes.kind = Kind::kDecode;
    }
    for (std::uint32_t node = 1; node < nodes; ++node) {
      moves.kind = Kind::kSend;
      moves.node = node - 1;
      message = behind(message, moves);
      moves.kind = Kind::kRecv;
      moves.node = codes.node = node;
      message = behind(message, moves);
      if (algorithm != kRaw) behind(message, codes);
    }
  }
  casync::TaskGraph graph = std::move(builder).build();
  casync::check(graph);
  return graph;
}

TEST_CASE("an uncontended ring takes 2(N-1)·(α + S/(N·B))") {
  for (const Network network : {Network::kPort, Network::kFair}) {
    for (const std::int64_t nodes : {2, 3, 4, 8, 16}) {
      const std::int64_t elements = 32 * nodes * 1000;
      const std::int64_t bytes = 4 * elements;
      const auto graph = test_graph(test_model({elements}), "ring", nodes, kRaw, nodes);
      const std::int64_t expected = 2 * (nodes - 1) * (kOverhead + bytes / nodes * kPsPerByte);
      CHECK(run(graph, test_cluster(nodes), network).iteration.count() == expected);
    }
  }
}

TEST_CASE("latency adds to every hop of a ring, and to nothing else") {
  // 2(N-1)·(o + S/(N·B) + L): each hop waits for the arrival of the previous one.
  costs::Cluster cluster = test_cluster(4);
  cluster.link.latency_s = 7e-6;
  const auto graph = test_graph(test_model({32 * 4}), "ring", 4, kRaw, 4);
  const std::int64_t expected = 2 * 3 * (kOverhead + 128 * kPsPerByte + 7 * kUs);
  CHECK(run(graph, cluster, Network::kPort).iteration.count() == expected);
  CHECK(run(graph, cluster, Network::kFair).iteration.count() == expected);
}

TEST_CASE(
    "k messages of S into one receiver take k·(α + S/B) on both networks, and so do k out of one") {
  // Raw ps with one partition: N-1 slices go into the server, then N-1 out of it.
  for (const Network network : {Network::kPort, Network::kFair}) {
    for (const std::int64_t nodes : {2, 3, 5, 8, 13}) {
      const std::int64_t bytes = 4 * 32 * 999;
      const auto graph = test_graph(test_model({32 * 999}), "ps", nodes, kRaw, 1);
      const std::int64_t k = nodes - 1;
      CHECK(run(graph, test_cluster(nodes), network).iteration.count() ==
            2 * k * (kOverhead + bytes * kPsPerByte));
    }
  }
}

TEST_CASE("all-to-all ps with K = N takes 2(N-1)·(α + S/(N·B)), ports or fair") {
  // With ports, rotated sends keep every port busy with one message at a time. With fair sharing,
  // each egress carries N-1 equal flows, each at 1/(N-1) of the link. Merges are free, so the
  // second half mirrors the first.
  for (const Network network : {Network::kPort, Network::kFair}) {
    for (const std::int64_t nodes : {2, 3, 4, 6}) {
      const std::int64_t slice_bytes = 4 * 32 * 100;
      const auto graph = test_graph(test_model({32 * 100 * nodes}), "ps", nodes, kRaw, nodes);
      CHECK(run(graph, test_cluster(nodes), network).iteration.count() ==
            2 * (nodes - 1) * (kOverhead + slice_bytes * kPsPerByte));
    }
  }
}

TEST_CASE("compressed ps of two nodes is a chain") {
  // The worker encodes and sends; the server decodes and adds, encodes the mean and sends; the
  // worker decodes: E + s + A + E + s + D. The server's own decode overlaps with the send.
  const auto graph = test_graph(test_model({320}), "ps", 2, 0, 1);
  const std::int64_t s = kOverhead + 320 * kPsPerByte;
  const std::int64_t expected = kEncode + s + kDecodeAdd + kEncode + s + kDecode;
  CHECK(run(graph, test_cluster(2), Network::kPort).iteration.count() == expected);
  CHECK(run(graph, test_cluster(2), Network::kFair).iteration.count() == expected);
}

TEST_CASE("compressed ring of one partition is a chain") {
  // Encode (E), then N-1 times a message, decode-and-add and encode (s + A + E), then N-1 messages,
  // and the last node's decode.
  for (const std::int64_t nodes : {2, 3, 5}) {
    const auto graph = test_graph(test_model({320}), "ring", nodes, 0, 1);
    const std::int64_t s = kOverhead + 320 * kPsPerByte;
    const std::int64_t expected =
        kEncode + (nodes - 1) * (s + kDecodeAdd + kEncode) + (nodes - 1) * s + kDecode;
    CHECK(run(graph, test_cluster(nodes), Network::kPort).iteration.count() == expected);
    CHECK(run(graph, test_cluster(nodes), Network::kFair).iteration.count() == expected);
  }
}

TEST_CASE("compressed ps of three nodes and partitions, by hand") {
  // On every node, with encode E = 3, decode-and-add A = 4, decode D = 2 us and message s = 5 + 4 =
  // 9 us (4000 elements of one byte):
  //   codec:   E [0,3] for the first peer, E [3,6] for the second
  //   egress:  s [3,12], s [12,21], and at the same times the ingress
  //   codec:   A [12,16], A [21,25], encode the mean [25,28], decode it [28,30]
  //   egress:  s [28,37], s [37,46]
  //   codec:   D [37,39], D [46,48]
  const auto graph = test_graph(test_model({3 * 4000}), "ps", 3, 0, 3);
  CHECK(run(graph, test_cluster(3), Network::kPort).iteration.count() == 48 * kUs);
}

TEST_CASE("two gradients share a ring of two nodes, by hand") {
  // Raw, K = 1; the bytes take 4 us. Gradient 0 starts at node 0, gradient 1 at node 1, so both
  // halves have one message in each direction: 2·(5 + 4) us. A third gradient starts at node 0
  // again, behind gradient 0: its first hop ends at 18 us, and its second at 27 us, as node 1's
  // egress is free from 18 us on.
  const std::int64_t elements = 992;  // 3968 bytes
  const std::int64_t s = kOverhead + 3968 * kPsPerByte;
  CHECK(run(test_graph(test_model({elements, elements}), "ring", 2, kRaw, 1), test_cluster(2),
            Network::kPort)
            .iteration.count() == 2 * s);
  CHECK(run(test_graph(test_model({elements, elements, elements}), "ring", 2, kRaw, 1),
            test_cluster(2), Network::kPort)
            .iteration.count() == 3 * s);
}

TEST_CASE("a chunked chain broadcast takes (N-2+c)·(α + S/(c·B)), least at √((N-2)·S/(α·B))") {
  // With S = 80 kB, α·B = 5 kB and N = 6, the best number of chunks is √(4·80/5) = 8.
  constexpr std::int64_t kBytes = 80'000;
  for (const Network network : {Network::kPort, Network::kFair}) {
    for (const std::uint32_t nodes : {2, 3, 6, 17}) {
      std::int64_t least = INT64_MAX, best = 0;
      for (const std::int64_t chunks : {1, 2, 4, 5, 8, 10, 16, 20}) {
        const std::int64_t bytes = kBytes / chunks;
        const auto graph = chain_broadcast(nodes, chunks, bytes / 4, bytes, kRaw);
        const std::int64_t time = run(graph, test_cluster(nodes), network).iteration.count();
        CHECK(time == (nodes - 2 + chunks) * (kOverhead + bytes * kPsPerByte));
        if (time < least) best = chunks;
        least = std::min(least, time);
      }
      if (nodes == 6) CHECK(best == 8);
    }
  }
}

TEST_CASE("a compressed chain takes t_e + (N-1)·t_s + t_d + (c-1)·max(t_e, t_s, t_d)") {
  // t_s = α + r·S/(c·B) = 5 + 1 us: a chunk has 4000 bytes, and 1000 on the wire.
  constexpr std::int64_t kElements = 1000, kSend = kOverhead + kElements * kPsPerByte;
  for (const std::int64_t encode : {3 * kUs, 40 * kUs}) {
    for (const std::int64_t decode : {2 * kUs, 50 * kUs}) {
      costs::Profile profile = test_profile();
      profile.codecs["byte"] = {constant(encode), constant(decode), constant(decode)};
      for (const std::int64_t nodes : {2, 3, 8}) {
        for (const std::int64_t chunks : {1, 2, 7}) {
          const auto graph = chain_broadcast(nodes, chunks, kElements, kElements, 0);
          const std::int64_t expected = encode + (nodes - 1) * kSend + decode +
                                        (chunks - 1) * std::max({encode, kSend, decode});
          for (const Network network : {Network::kPort, Network::kFair}) {
            const Result result = simulate(graph, TaskCosts(profile, {byte_codec()}),
                                           test_cluster(nodes), {.network = network});
            CHECK(result.iteration.count() == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("communication starts when its gradient is ready, after forward") {
  models::Model model = test_model({32, 32});
  model.forward_s = 10e-6;
  model.gradients[0].ready_s = 100e-6;
  model.gradients[1].ready_s = 40e-6;
  const auto graph = test_graph(model, "ring", 2, kRaw, 1);
  const Result result = run(graph, test_cluster(2), Network::kFair);
  CHECK(result.compute.count() == 110 * kUs);
  CHECK(result.iteration.count() == 110 * kUs + 2 * (kOverhead + 128 * kPsPerByte));
  CHECK(result.bytes_sent == std::vector<std::int64_t>{256, 256});
}

}  // namespace
}  // namespace hipress::sim
