#include "costs/description.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace hipress::costs {
namespace {

Profile profile_from(const std::string& source) {
  Profile profile;
  profile.name = "mine";
  profile.source = source;
  return profile;
}

models::Model model_of(double forward_s, double backward_s) {
  models::Model model;
  model.forward_s = forward_s;
  model.gradients = {{.name = "a", .elements = 1, .ready_s = backward_s}};
  return model;
}

TEST_CASE("a profile's origin is the first word of its source that says one") {
  CHECK(origin_of(profile_from("measured")) == "measured");
  CHECK(origin_of(profile_from("derived, not measured; from published throughputs")) == "derived");
  CHECK(origin_of(profile_from("estimated, not measured; kernels from memory traffic")) ==
        "estimated");
  CHECK(origin_of(profile_from("cost constants published with SeCoPa, not measured here")) ==
        "published");
  CHECK(origin_of(profile_from("by hand, not measured")) == "of own making");
}

TEST_CASE("of a profile that nobody chose, the reason and a better one are named") {
  const Profile profile = read_profile(std::string(kDefaultProfile));
  CHECK(describe_origin(profile, true) == "profile sosp21 (published)");
  CHECK(describe_origin(profile, false) ==
        "profile sosp21 (published), since no `profile` was given: take one for your GPU and "
        "network, such as h100-100g (estimated), or measure your machines with hipress-profile");
}

TEST_CASE("costs of another algorithm are named") {
  Profile profile = profile_from("measured");
  profile.codecs["tern.pse(b=2)"] = {};
  CHECK(foreign_costs(profile, "tern.pse(b=2)").empty());
  CHECK(foreign_costs(profile, "onebit").empty());  // has no costs; codec() refuses it
  CHECK(
      foreign_costs(profile, "tern.pse(b=4)") ==
      "tern.pse(b=4) is charged the cost of tern.pse(b=2), since profile mine has no costs of its "
      "own for it; hipress-profile `algorithm` 'tern.pse(b=4)' measures them");
}

TEST_CASE("what a prediction rests on is said in one line") {
  const Profile profile = read_profile("h100-100g");
  Cluster cluster = cluster_from_profile(profile, 8);
  SECTION("nodes with several GPUs") {
    cluster.gpus_per_node = 4;
    cluster.gpu_link.bandwidth = 250e9;
    cluster.link.bandwidth = cluster.link.bandwidth_both_ways = 25e9 / 8;
    CHECK(describe_machines(profile, cluster, model_of(0.04, 0.08)) ==
          "profile h100-100g (estimated), 8 nodes × 4 GPUs, links 25 Gbit/s + 5us latency + 5us "
          "overhead, GPUs 250 GB/s; compute 120ms (forward 40ms)");
  }
  SECTION("hosts, racks, stragglers, half duplex, and no times") {
    cluster.host = {0, 0, 0, 0, 1, 1, 1, 1};
    cluster.host_link = LinkCosts{.bandwidth = 300e9, .bandwidth_both_ways = 300e9};
    cluster.racks = {RackCosts{.hosts = 1, .oversubscription = 2}};
    cluster.compute_speed[3] = 0.5;
    cluster.link.bandwidth_both_ways = 75e9 / 8;
    CHECK(describe_machines(profile, cluster, model_of(0, 0)) ==
          "profile h100-100g (estimated), 8 nodes on 2 hosts, links 96 Gbit/s (75 Gbit/s each way "
          "when both are busy) + 5us latency + 5us overhead, within hosts 300 GB/s, racks of 1 "
          "host 2:1 oversubscribed, 1 of another speed; compute not known (`compute_time`)");
  }
  SECTION("hosts that share nothing") {
    cluster.host = {0, 0, 0, 0, 1, 1, 1, 1};
    CHECK_THAT(describe_machines(profile, cluster, model_of(0, 0.08)),
               Catch::Contains("8 nodes on 2 hosts that share neither a link nor cores, links"));
    cluster.cores_per_host = 4;
    CHECK_THAT(describe_machines(profile, cluster, model_of(0, 0.08)),
               Catch::Contains("8 nodes on 2 hosts, links"));
  }
  SECTION("several micro-steps") {
    models::Model model = model_of(0.04, 0.08);
    model.micro_steps = 3;
    model.optimizer_s = 0.01;
    CHECK_THAT(describe_machines(profile, cluster, model),
               Catch::EndsWith("compute 370ms (3 micro-steps of 120ms; optimizer 10ms)"));
  }
  SECTION("slower links between two hosts") {
    cluster.slow_links = {{0, 1, 100e6, 0}, {2, 5, 50e6, 0}};
    CHECK_THAT(describe_machines(profile, cluster, model_of(0, 0.08)),
               Catch::Contains(", 2 slower links down to 400 Mbit/s; compute"));
  }
  SECTION("a model that says no forward, on slow links") {
    cluster.link.bandwidth = cluster.link.bandwidth_both_ways = 200e6 / 8;
    CHECK(describe_machines(profile, cluster, model_of(0, 0.08)) ==
          "profile h100-100g (estimated), 8 nodes, links 200 Mbit/s + 5us latency + 5us overhead; "
          "compute 80ms (forward not known)");
  }
}

}  // namespace
}  // namespace hipress::costs
