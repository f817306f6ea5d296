#include "plans/plan_yaml.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "casync/layout.hpp"
#include "io/file.hpp"
#include "io/version.hpp"
#include "io/yaml.hpp"
#include "plans/plan_file.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/plans/small_model.hpp"

using namespace hipress;
using namespace hipress::plans;
using namespace hipress::tests;

namespace {

const PlanReport kReport{.predicted_iteration_s = 0.123456789012,
                         .search = "timeline",
                         .profile = "sosp21 0123456789abcdef",
                         .network = "fair",
                         .lower_bound_s = 0.12};

std::string valid_head() { return "schema: hipress.plan/1\ntopology: ps\nnodes: 4\ngradients:\n"; }

}  // namespace

TEST_CASE("a plan YAML reads back what was written") {
  models::Model model = small_model();
  model.gradients[1].name = "b: {a name, that needs} 'quotes' # and more";
  const TemporaryFolder folder;
  const PlanContext context{model, "ring", 8};
  ResolvedPlan resolved = resolve_plan("tbq(tau=0.25)", context);
  resolved.plan.decisions[0] = {casync::kRaw, 3};
  write_plan_yaml(folder.path("plan.yaml"), model, resolved.plan, kReport);

  const ResolvedPlan read = resolve_plan(folder.path("plan.yaml"), context);
  CHECK(read.plan.topology == "ring");
  CHECK(read.plan.nodes == 8);
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    CHECK(algorithm_of(read, g) == algorithm_of(resolved, g));
    CHECK(partitions_of(read, g) == partitions_of(resolved, g));
  }
  CHECK(plan_fingerprint(model, read.plan) == plan_fingerprint(model, resolved.plan));
}

TEST_CASE("a plan YAML of all-reduces in half precision, grouped by hand, reads back") {
  const models::Model model = small_model();
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  const PlanContext context{.model = model, .topology = "allreduce", .nodes = 4};
  for (const std::string algorithm : {"fp16", "bf16"}) {
    ResolvedPlan resolved = resolve_plan(algorithm, context);
    resolved.plan.bulk_groups = {{0, 1}};
    write_plan_yaml(path, model, resolved.plan, kReport);
    const ResolvedPlan read = resolve_plan(path, context);
    CHECK(algorithm_of(read, 0) == algorithm);
    const casync::Layout layout = casync::make_layout(model, read.plan);
    REQUIRE(layout.is_group(layout.unit_of[0]));
    const casync::Unit& group = layout.units[layout.unit_of[0]];
    CHECK(group.partitions == 1);
    CHECK(read.plan.algorithms[static_cast<std::size_t>(group.algorithm)].half_precision);
    CHECK(plan_fingerprint(model, read.plan) == plan_fingerprint(model, resolved.plan));
  }
}

TEST_CASE("a plan YAML says where it comes from") {
  const models::Model model = small_model();
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  write_plan_yaml(path, model, resolve_plan("all", {model, "ps", 4}).plan, kReport);
  const io::YamlNode root = io::YamlNode::load(path);
  CHECK(root.at("model").text() == "small");
  CHECK(root.at("predicted_iteration").text() == "123.456789012ms");
  CHECK(root.at("lower_bound").text() == "120ms");
  CHECK(root.at("search").text() == "timeline");
  CHECK(root.at("network").text() == "fair");
  CHECK(root.at("profile").text() == "sosp21 0123456789abcdef");
  CHECK(root.at("tool").text() == io::version());
  // One gradient per line, for readers and for diff.
  CHECK_THAT(io::read_file(path),
             Catch::Contains("\n  - {name: b, elements: 300000, algorithm: onebit, K: 4}\n"));
}

TEST_CASE("a plan YAML says a transfer order that is not the usual one") {
  const models::Model model = small_model();
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  const PlanContext context{model, "ps", 4};
  const casync::Plan plan = resolve_plan("all", context).plan;
  PlanReport report = kReport;
  write_plan_yaml(path, model, plan, report);
  CHECK_FALSE(resolve_plan(path, context).transfer_order);
  report.transfer_order = casync::TransferOrder::kNeed;
  write_plan_yaml(path, model, plan, report);
  CHECK(io::YamlNode::load(path).at("transfer_order").text() == "need");
  CHECK(resolve_plan(path, context).transfer_order == casync::TransferOrder::kNeed);
}

TEST_CASE("a plan YAML without gradients") {
  const models::Model model;
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.yaml");
  write_plan_yaml(path, model, resolve_plan("all", {model, "ps", 4}).plan, kReport);
  CHECK(resolve_plan(path, {model, "ps", 4}).plan.decisions.empty());
}

TEST_CASE("what a plan YAML says of shards is read, or refused where it stands") {
  const models::Model model = small_model();
  const auto with = [&](const std::string& more) {
    return "schema: hipress.plan/1\ntopology: ps\nnodes: 4\nschedule: fsdp\n" + more +
           "gradients:\n- {name: a, elements: 100, algorithm: none, K: 1}\n"
           "- {name: b, elements: 300000, algorithm: none, K: 1}\n"
           "- {name: c, elements: 50, algorithm: none, K: 1}\n";
  };
  const auto about = [&](const std::string& more) {
    return complaint_about_plan("p.yaml", with(more), {model, "ps", 4});
  };
  const TemporaryFolder folder;
  const std::string good = folder.file("good.yaml", with("shards_by: RING\nexchange_within: 2\n"));
  const casync::Plan plan = resolve_plan(good, {model, "ps", 4}).plan;
  CHECK(plan.shards_by == "ring");
  CHECK(plan.exchange_within == 2);
  CHECK(about("exchange_within: 3\nshards_by: ring\n") ==
        "p.yaml:5: exchange_within: must divide the 4 nodes that have all shards, got 3");
  CHECK(
      about("rails: 3\n") ==
      "p.yaml:5: rails: is the number of nodes per host, and 3 does not divide 4: give a divisor");
  const casync::Plan rails =
      parse_plan_yaml(with("shards_by: ring\nrails: 2\n"), "p.yaml", {model, "ps", 4}).plan;
  CHECK(rails.rails == 2);
  CHECK_THAT(plan_yaml(model, rails, {}), Catch::Contains("rails: 2"));
  CHECK(about("exchange_within: 2\nshards_by: pigeon\n") ==
        "p.yaml:6: shards_by: shards travel by library, ring, direct, not by 'pigeon'");

  models::Model wrapped = model;
  const std::string wrong = folder.file("wrong.yaml", with("wrap: nosuch.*\n"));
  CHECK_THAT(tests::complaint([&] { wrap_as_planned(wrong, wrapped); }),
             Catch::Contains("wrong.yaml:5: wrap: no module is called 'nosuch.*'"));
}

TEST_CASE("bad plan YAML is refused with file and line") {
  const models::Model model = small_model();
  const PlanContext context{model, "ps", 4};
  const auto about = [&](const std::string& content) {
    return complaint_about_plan("p.yaml", content, context);
  };
  const auto with = [&](const std::string& item) { return about(valid_head() + item); };
  SECTION("another topology") {
    CHECK(about("schema: hipress.plan/1\ntopology: ring\nnodes: 4\ngradients: []\n") ==
          "p.yaml:2: topology: the plan is for 'ring', not ps; ask for `topology` ring");
  }
  SECTION("a topology in capitals") {
    CHECK(about("schema: hipress.plan/1\ntopology: RING\nnodes: 4\ngradients: []\n") ==
          "p.yaml:2: topology: the plan is for 'ring', not ps; ask for `topology` ring");
    CHECK_THAT(about("schema: hipress.plan/1\ntopology: PS\nnodes: 4\ngradients: []\n"),
               Catch::StartsWith("p.yaml: gradient 'a' of model 'small' is missing"));
  }
  SECTION("an unknown topology") {
    CHECK(about("schema: hipress.plan/1\ntopology: mesh\nnodes: 4\ngradients: []\n") ==
          "p.yaml:2: topology: unknown topology 'mesh'; known are ps, ring, allreduce, allgather, "
          "chain, binomial, scatter_allgather");
  }
  SECTION("another number of nodes") {
    CHECK(
        about("schema: hipress.plan/1\ntopology: ps\nnodes: 8\ngradients: []\n") ==
        "p.yaml:3: nodes: the plan is for 8 nodes, not 4; ask for `nnodes` 8, or plan anew for 4");
  }
  SECTION("another schema") {
    CHECK(about("schema: hipress.plan/2\ntopology: ps\nnodes: 4\ngradients: []\n") ==
          "p.yaml:1: schema: must be hipress.plan/1, got 'hipress.plan/2'");
  }
  SECTION("a profile instead of a plan") {
    CHECK_THAT(about("schema: hipress.profile/1\nhardware: x\n"),
               Catch::StartsWith("p.yaml:2: unknown key 'hardware'"));
  }
  SECTION("a time without unit, and one that is none") {
    CHECK_THAT(about(valid_head() + "predicted_iteration: 12\n"),
               Catch::StartsWith("p.yaml:5: predicted_iteration must be a duration with unit"));
    CHECK_THAT(about(valid_head() + "lower_bound: banana\n"),
               Catch::StartsWith("p.yaml:5: lower_bound must be a duration with unit"));
  }
  SECTION("an unknown key") {
    CHECK(with("- {name: a, elements: 100, algorithm: none, k: 1}\n") ==
          "p.yaml:5: unknown key 'gradients[0].k'; did you mean 'K'? (known: name, elements, "
          "algorithm, K, dtype, "
          "gather)");
  }
  SECTION("K = 0") {
    CHECK(with("- {name: a, elements: 100, algorithm: none, K: 0}\n") ==
          "p.yaml:5: gradient 'a': K must be a positive integer, got '0'");
  }
  SECTION("a foreign gradient") {
    CHECK(
        with("- {name: fc6.weight, elements: 100, algorithm: none, K: 1}\n") ==
        "p.yaml:5: gradient 'fc6.weight' is not in model 'small', so the plan was made for another "
        "input");
  }
  SECTION("other elements") {
    CHECK(with("- {name: a, elements: 99, algorithm: none, K: 1}\n") ==
          "p.yaml:5: gradient 'a' has 99 elements in the plan but 100 in model 'small'");
  }
  SECTION("an unknown algorithm") {
    CHECK_THAT(with("- {name: a, elements: 100, algorithm: onebyte, K: 1}\n"),
               Catch::StartsWith("p.yaml:5: gradient 'a' cannot be compressed: "));
  }
  SECTION("no algorithm") {
    CHECK(with("- {name: a, elements: 100, algorithm: '', K: 1}\n") ==
          "p.yaml:5: gradient 'a': algorithm: must be an algorithm's name or none, got ''");
  }
  SECTION("an unknown transfer order") {
    const std::string gradients =
        "gradients:\n- {name: a, elements: 100, algorithm: none, K: 1}\n"
        "- {name: b, elements: 300000, algorithm: none, K: 1}\n"
        "- {name: c, elements: 50, algorithm: none, K: 1}\n";
    CHECK(about("schema: hipress.plan/1\ntopology: ps\nnodes: 4\ntransfer_order: late\n" +
                gradients) ==
          "p.yaml:4: transfer_order: unknown transfer order 'late'; known are ready, need");
  }
  SECTION("missing gradients") {
    CHECK(about("schema: hipress.plan/1\ntopology: ps\nnodes: 4\ngradients: []\n") ==
          "p.yaml: gradient 'a' of model 'small' is missing (3 of 3 are); plan this model anew");
  }
  SECTION("a truncated file") {
    CHECK_THAT(with("- {name: a, elements: 10"), Catch::StartsWith("p.yaml:5: not valid YAML: "));
  }
}

TEST_CASE("what a plan YAML is for can be asked before it is resolved") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("p.yaml", "topology: RING\nnodes: 4\n");
  CHECK(topology_of_plan(file) == "ring");
  CHECK(nodes_of_plan(file) == 4);
  CHECK(!topology_of_plan(folder.file("silent.yaml", "gradients: []\n")));
  CHECK(!topology_of_plan("all"));
  CHECK(!topology_of_plan("SeCoPaPlan.txt"));
  const std::string wrong = folder.file("wrong.yaml", "nodes: 4\ntopology: mesh\n");
  CHECK_THAT(tests::complaint([&] { topology_of_plan(wrong); }),
             Catch::Contains("wrong.yaml:2: topology: unknown topology 'mesh'"));
}

TEST_CASE("a title names a plan without its folder") {
  casync::Plan plan = {.topology = "ring", .nodes = 4, .algorithms = {}, .decisions = {}};
  CHECK(title("build/demo/secopa.txt", plan) == "plan secopa.txt, ring, N = 4");
  CHECK(title("all", plan) == "plan all, ring, N = 4");
  plan.schedule = casync::Schedule::parse("fsdp(reshard=false)");
  CHECK(title("none", plan) == "plan none, fsdp(reshard=false) by library, N = 4");
}
