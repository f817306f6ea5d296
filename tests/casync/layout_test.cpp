#include "casync/layout.hpp"

#include <catch2/catch.hpp>

#include "tests/casync/fixtures.hpp"

namespace hipress::casync {
namespace {

using Catch::Matchers::Contains;
using Members = std::vector<std::uint32_t>;

/// The members of each group, in the order of the groups.
std::vector<Members> groups_of(const Layout& layout) {
  std::vector<Members> groups;
  for (std::uint32_t u = layout.gradients; u < layout.units.size(); ++u) {
    groups.push_back(layout.units[u].members);
  }
  return groups;
}

/// A model with five gradients of 40 bytes and a large one (index 2), ready at 5, 4, 3, 2, 1, 0 us.
models::Model small_ones() {
  models::Model model = model_of({10, 10, 1000, 10, 10, 10});
  for (std::size_t g = 0; g < 6; ++g) {
    model.gradients[g].ready_s = 1e-6 * static_cast<double>(5 - g);
  }
  return model;
}

Plan bulk_plan(std::int8_t algorithm = 0) {
  Plan plan = plan_of("ring", 4, algorithm, 3, 6);
  plan.bulk.threshold_bytes = 41;
  return plan;
}

TEST_CASE("without a threshold every gradient is by itself") {
  Plan plan = bulk_plan();
  plan.bulk = {.threshold_bytes = 0, .wait = Picoseconds(1), .limit_bytes = 100};
  const Layout layout = make_layout(small_ones(), plan);
  CHECK(layout.units.size() == 6);
  CHECK(layout.order == Members{5, 4, 3, 2, 1, 0});
  CHECK(layout.units[2].partitions == 3);
  CHECK(unit_names(layout) == std::vector<std::string>{"g0", "g1", "g2", "g3", "g4", "g5"});
}

TEST_CASE("without wait and limit, all that is smaller than the threshold is one group") {
  const Layout layout = make_layout(small_ones(), bulk_plan());
  REQUIRE(groups_of(layout) == std::vector<Members>{{5, 4, 3, 1, 0}});
  const Unit& group = layout.units[6];
  CHECK(group.name == "bulk0");
  CHECK(group.elements == 128);  // 5 · 10, rounded up to a multiple of 32 · 4
  CHECK(group.partitions == 4);  // N
  CHECK(from_seconds(group.ready_s).count() == 5'000'000);
  CHECK(layout.units[0].members.empty());
  CHECK(layout.order == Members{2, 6});  // gradient 0 completes the group
  CHECK(layout.unit_of == Members{6, 6, 2, 6, 6, 6});
  const std::vector<Member> members = places(group, small_ones());
  CHECK(members[4].gradient == 0);
  CHECK(members[4].first == 40);
}

TEST_CASE("the threshold itself is not smaller than the threshold") {
  Plan plan = bulk_plan();
  plan.bulk.threshold_bytes = 40;
  CHECK(groups_of(make_layout(small_ones(), plan)).empty());
}

TEST_CASE("a gradient that is ready too late after the first starts the next group") {
  // The gradients ready at 0, 1 and 2 us are one group; those at 4 and 5 us are the next.
  Plan plan = bulk_plan();
  plan.bulk.wait = Picoseconds(2'000'000);
  CHECK(groups_of(make_layout(small_ones(), plan)) == std::vector<Members>{{5, 4, 3}, {1, 0}});
  plan.bulk.wait = Picoseconds(1'999'999);
  CHECK(groups_of(make_layout(small_ones(), plan)) == std::vector<Members>{{5, 4}, {1, 0}});
  plan.bulk.wait = Picoseconds(0);  // no gradient waits for another one
  CHECK(groups_of(make_layout(small_ones(), plan)).empty());
}

TEST_CASE("what would make a group too large starts the next") {
  Plan plan = bulk_plan();
  plan.bulk.limit_bytes = 80;
  CHECK(groups_of(make_layout(small_ones(), plan)) == std::vector<Members>{{5, 4}, {3, 1}});
  plan.bulk.limit_bytes = 79;
  CHECK(groups_of(make_layout(small_ones(), plan)).empty());  // all would have one member
}

TEST_CASE("compressed and raw gradients, and those of other topologies, are grouped apart") {
  Plan plan = bulk_plan();
  plan.decisions[4].algorithm = plan.decisions[1].algorithm = kRaw;
  CHECK(groups_of(make_layout(small_ones(), plan)) == std::vector<Members>{{4, 1}, {5, 3, 0}});
  plan.raw_topology = "allreduce";
  const Layout layout = make_layout(small_ones(), plan);
  CHECK(layout.units[6].topology->name == "allreduce");
  CHECK(layout.units[6].partitions == 1);
  CHECK(layout.units[7].topology->name == "ring");
}

TEST_CASE("half-precision gradients that a library sums are grouped as raw ones are") {
  Plan plan = bulk_plan();
  plan.topology = "allreduce";
  plan.algorithms = {half_bytes(true)};
  plan.decisions[2].algorithm = kRaw;
  plan.bulk_groups = {{0, 1}};
  const Layout layout = make_layout(small_ones(), plan);
  CHECK(groups_of(layout) == std::vector<Members>{{5, 4, 3}, {1, 0}});
  for (const Unit& unit : layout.units) CHECK(unit.partitions == 1);
  CHECK(layout.units[6].algorithm == 0);
  CHECK(layout.units[6].elements == 128);  // 3 · 10, rounded up to a multiple of 32 · 4
  plan.bulk_groups = {{1, 2}};
  CHECK_THROWS_WITH(make_layout(small_ones(), plan), Contains("compressed differently"));
}

TEST_CASE("the rule gives each gradient the place of its group's last one") {
  // Gradients of 10 bytes (the third: 99), ready at 0, 1, 2 … ps; the second and sixth are raw.
  std::vector<Groupable> gradients(7, {.bytes = 10, .algorithm = 0});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i].ready = Picoseconds(static_cast<std::int64_t>(i));
  }
  gradients[1].algorithm = gradients[5].algorithm = kRaw;
  gradients[2].bytes = 99;
  CHECK(bulk_groups({.threshold_bytes = 99, .limit_bytes = 20}, gradients) ==
        Members{3, 5, 2, 3, 6, 5, 6});
  CHECK(bulk_groups({.threshold_bytes = 99, .wait = Picoseconds(3)}, gradients) ==
        Members{3, 1, 2, 3, 6, 5, 6});
  CHECK(bulk_groups({.threshold_bytes = 10}, gradients) == Members{0, 1, 2, 3, 4, 5, 6});
  CHECK(bulk_groups({.threshold_bytes = 99}, {}).empty());
}

TEST_CASE("groups by hand come before the rule") {
  Plan plan = bulk_plan();
  plan.bulk_groups = {{0, 2}};
  CHECK(groups_of(make_layout(small_ones(), plan)) == std::vector<Members>{{5, 4, 3, 1}, {2, 0}});
  plan.bulk.threshold_bytes = 0;
  CHECK(groups_of(make_layout(small_ones(), plan)) == std::vector<Members>{{2, 0}});
}

TEST_CASE("impossible layouts are refused with the culprit's name") {
  const models::Model model = small_ones();
  Plan plan = bulk_plan();
  SECTION("a gradient twice") {
    plan.bulk_groups = {{0, 1}, {3, 0}};
    CHECK_THROWS_WITH(make_layout(model, plan), Contains("gradient 'g0' is in a bulk group twice"));
  }
  SECTION("a gradient twice in one group") {
    plan.bulk_groups = {{1, 1}};
    CHECK_THROWS_WITH(make_layout(model, plan), Contains("'g1' is in a bulk group twice"));
  }
  SECTION("an unknown gradient") {
    plan.bulk_groups = {{0, 6}};
    CHECK_THROWS_WITH(make_layout(model, plan), Contains("holds gradient 6, the model has 6"));
  }
  SECTION("unlike gradients") {
    plan.decisions[3].algorithm = kRaw;
    plan.bulk_groups = {{4, 3}};
    CHECK_THROWS_WITH(make_layout(model, plan),
                      Contains("gradient 'g3' cannot be in a bulk group with gradient 'g4'"));
  }
  SECTION("a topology that does not compress") {
    plan.topology = "allreduce";
    CHECK_THROWS_WITH(make_layout(model, plan),
                      Contains("gradient 'g0' is compressed with half, but allreduce adds") &&
                          Contains("fp16, bf16") && Contains("take ps or ring"));
  }
  SECTION("an unknown topology of raw gradients") {
    plan.raw_topology = "mesh";
    CHECK_THROWS_WITH(make_layout(model, plan), Contains("unknown topology 'mesh'"));
  }
}

}  // namespace
}  // namespace hipress::casync
