#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "io/file.hpp"
#include "kernels/codec/codec.hpp"
#include "plans/plan_file.hpp"
#include "tests/plans/small_model.hpp"

using namespace hipress;
using namespace hipress::plans;
using namespace hipress::tests;

namespace {

/// Algorithm of each gradient of small_model() (100, 300000 and 50 elements); "" for raw.
std::vector<std::string> algorithms_of(const std::string& name, const std::string& algorithm) {
  const models::Model model = small_model();
  const ResolvedPlan resolved = resolve_plan(name, {model, "ring", 5, algorithm});
  std::vector<std::string> algorithms;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    algorithms.push_back(algorithm_of(resolved, g));
    CHECK(partitions_of(resolved, g) == 5);  // K = N
  }
  CHECK(resolved.plan.topology == "ring");
  return algorithms;
}

using Algorithms = std::vector<std::string>;

}  // namespace

TEST_CASE("named plans") {
  CHECK(algorithms_of("none", "onebit") == Algorithms{"", "", ""});
  CHECK(algorithms_of("all", "tbq") == Algorithms{"tbq", "tbq", "tbq"});
  CHECK(algorithms_of("fp16", "tbq") == Algorithms{"fp16", "fp16", "fp16"});
  CHECK(algorithms_of("tbq(tau=0.25)", "onebit") ==
        Algorithms{"tbq(tau=0.25)", "tbq(tau=0.25)", "tbq(tau=0.25)"});
  CHECK(algorithms_of("threshold", "onebit") == Algorithms{"", "onebit", ""});  // threshold 262144
  CHECK(algorithms_of("threshold:100", "onebit") == Algorithms{"onebit", "onebit", ""});
  CHECK(algorithms_of("threshold:101", "onebit") == Algorithms{"", "onebit", ""});
  CHECK(algorithms_of("threshold:1", "onebit") == algorithms_of("all", "onebit"));
}

TEST_CASE("every algorithm there is names a plan") {
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    const std::string name(row.name);
    // Algorithms with several stages leave vectors raw.
    const std::string taken = row.additive ? "" : name;
    CHECK(algorithms_of(name, "onebit") == Algorithms{taken, taken, taken});
  }
}

TEST_CASE("a staged algorithm takes matrices, and leaves what it does not gain by raw") {
  models::Model model = small_model();
  model.gradients[0].shape = {model.gradients[0].elements, 1};
  model.gradients.push_back({.name = "matrix", .elements = 6400, .shape = {80, 80}});
  const ResolvedPlan resolved = resolve_plan("powersgd(rank=2)", {model, "ring", 2});
  for (std::size_t g = 0; g + 1 < model.gradients.size(); ++g)
    CHECK(algorithm_of(resolved, g) == "");
  CHECK(algorithm_of(resolved, model.gradients.size() - 1) == "powersgd(rank=2)");
}

TEST_CASE("a topology is known in any case") {
  const models::Model model = small_model();
  CHECK(resolve_plan("none", {model, "PS", 2}).plan.topology == "ps");
  CHECK(resolve_plan("none", {model, "RING", 2}).plan.topology == "ring");
}

TEST_CASE("a name wins over a file of that name, which a path still reaches") {
  const models::Model model = small_model();
  const TemporaryFolder folder;
  folder.file("all", "a,n,1\nb,n,1\nc,n,1\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path(""));
  CHECK(algorithm_of(resolve_plan("all", {model, "ps", 2}), 0) == "onebit");
  CHECK(algorithm_of(resolve_plan("./all", {model, "ps", 2}), 0) == "");
  std::filesystem::current_path(before);
}

TEST_CASE("gradients of half precision that a plan leaves raw travel as they are") {
  models::Model model = small_model();
  model.gradients[0].dtype = models::Dtype::kFloat16;
  model.gradients[2].dtype = models::Dtype::kBfloat16;
  const ResolvedPlan resolved = resolve_plan("threshold", {model, "ps", 2});
  CHECK(algorithm_of(resolved, 0) == "fp16");
  CHECK(algorithm_of(resolved, 1) == "onebit");
  CHECK(algorithm_of(resolved, 2) == "bf16");

  // A plan file lists these gradients as not compressed.
  const TemporaryFolder folder;
  write_plan_text(folder.path("out"), model, resolved.plan);
  CHECK(io::read_file(folder.path("out")) == "a,100,n,2\nb,300000,y,2\nc,50,n,2\n");
}

TEST_CASE("names that mean nothing are refused with what there is") {
  const models::Model model = small_model();
  const PlanContext context{model, "ps", 4};
  CHECK(complaint([&] { resolve_plan("everything", context); }) ==
        "plan 'everything' is neither a file nor a named plan; named plans are none, all, "
        "threshold[:ELEMENTS] and algorithms (" +
            kernels::algorithm_names() + ")");
  CHECK_THAT(complaint([&] { resolve_plan("oenbit", context); }),
             Catch::Contains("; did you mean 'onebit'? named plans are none"));
  CHECK_THAT(
      complaint([&] {
        resolve_plan(
            "ddp-fp16",
            {.model = model, .topology = "ps", .nodes = 4, .other_names = "best, ddp, ddp_fp16"});
      }),
      Catch::Contains("; did you mean 'ddp_fp16'? "));
  CHECK(complaint([&] { resolve_plan("threshold:0", context); }) ==
        "plan threshold: its number of elements must be a positive integer, got '0'");
  CHECK(complaint([&] { resolve_plan("threshold:", context); }) ==
        "plan threshold: its number of elements must be a positive integer, got ''");
  CHECK(complaint([&] { resolve_plan("none.txt", context); }) ==
        "none.txt: cannot be read: No such file or directory");
  CHECK_THAT(complaint([&] { resolve_plan("", context); }),
             Catch::StartsWith("plan '' is neither"));
}
