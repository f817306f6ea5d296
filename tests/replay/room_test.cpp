#include "replay/room.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "io/error.hpp"
#include "tests/runtime/fixtures.hpp"
#include "transport/record.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Matchers::Contains;

namespace {

Room room(const Case& made, std::uint32_t ranks, bool verify) {
  std::vector<std::uint32_t> nodes(ranks);
  std::iota(nodes.begin(), nodes.end(), 0u);
  return room_of(made.graph, made.model, made.plan, nodes, verify);
}

}  // namespace

TEST_CASE("the room that ranks need is that of values, messages, states and connections") {
  // Four ranks have 4000 elements each, and every rank is the server of one partition, which it
  // receives from the 3 other ranks; its own values are in place.
  const Case raw = make_case("ps", 4, 4, "raw", {4000});
  const Room of_raw = room(raw, 4, false);
  CHECK(of_raw.gradients == 4 * 4000 * 4);
  // 4 servers, 3 messages each, of 1000 values of 4 bytes.
  CHECK(of_raw.messages == 4 * 3 * 1000 * 4);
  CHECK(of_raw.states == 0);
  constexpr std::int64_t kRings = 2 * transport::kRingBytes;
  CHECK(of_raw.connections == 4 * 3 * kRings);
  const Room of_one = room(raw, 1, false);
  CHECK(of_one.gradients == 4000 * 4);
  CHECK(of_one.messages == 3 * 1024 * 4);  // partitions end at multiples of 32 elements
  CHECK(of_one.connections == 3 * kRings);
  CHECK(of_one.all() < of_raw.all());

  // onebit keeps residuals of the elements that a rank encodes as a worker, and of those that it
  // encodes as a server. For either role, the store keeps a whole gradient.
  const Case coded = make_case("ps", 4, 4, "onebit", {4000});
  const Room of_coded = room(coded, 4, false);
  CHECK(of_coded.states == 4 * 2 * 4000 * 4);
  CHECK(of_coded.messages < of_raw.messages);
  // Each of 4 ranks checks another partition, and holds its 1000 values of all 4 nodes.
  const Room checked = room(coded, 4, true);
  CHECK(checked.gradients == of_coded.gradients + 4 * 1000 * 4 * 4);
  CHECK(checked.states > of_coded.states);
  CHECK(checked.tables > of_coded.tables);
}

TEST_CASE("ranks that need more memory than there is are refused with the figures") {
  const Room room{.gradients = 3'000'000'000, .connections = 1 << 20};
  CHECK_NOTHROW(require_room(room, 2, room.all()));
  CHECK_THROWS_AS(require_room(room, 2, room.all() - 1), io::InputError);
  CHECK_THROWS_WITH(
      require_room(room, 2, 1'000'000'000),
      Contains("2 ranks in one process need about 3GB of memory (3GB for gradients") &&
          Contains("and 1GB are available: start fewer ranks (`nnodes`)"));
  CHECK_THROWS_WITH(require_room(room, 1, 0), Contains("this rank needs about 3GB"));
}
