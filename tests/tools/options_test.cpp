#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "io/spelling.hpp"
#include "requests/shared_fields.hpp"
#include "tools/options/fields.hpp"
#include "tools/validators.hpp"

namespace hipress::tools {
namespace {

/// Parses a command line with these words.
costs::MachineOptions parsed(const std::vector<std::string>& words) {
  costs::MachineOptions options;
  CLI::App app;
  requests::Fields fields;
  requests::add(fields, options, "default: none");
  bind(app, fields);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  app.parse(reversed);
  return options;
}

TEST_CASE("machines are named by options") {
  const costs::MachineOptions options =
      parsed({"--profile", "v100-100g", "--cluster", "c.yaml", "--bandwidth", "25Gbps", "--latency",
              "20us", "--overhead", "30us", "--gpus-per-node", "4", "--gpu-bandwidth", "300GB/s",
              "--assume-cost", "mine.pse=onebit", "--assume-cost", "x.pse(b=2)=tbq"});
  CHECK(options.profile == "v100-100g");
  CHECK(options.cluster == "c.yaml");
  CHECK(options.bandwidth == "25Gbps");
  CHECK(options.latency == "20us");
  CHECK(options.overhead == "30us");
  CHECK(options.gpus_per_node == 4);
  CHECK(options.gpu_bandwidth == "300GB/s");
  CHECK(options.assumed_costs == std::vector<std::string>{"mine.pse=onebit", "x.pse(b=2)=tbq"});
  CHECK(options.scale_kernels.empty());
  CHECK_THROWS_AS(parsed({"--gpus-per-node", "0"}), CLI::ParseError);
  CHECK_THROWS_AS(parsed({"--profile", ""}), CLI::ParseError);
}

TEST_CASE("option --scale-kernels may have a value") {
  CHECK(parsed({"--scale-kernels"}).scale_kernels == costs::kAsHardware);
  CHECK(parsed({"--scale-kernels", "2TB/s", "--latency", "1us"}).scale_kernels == "2TB/s");
  CHECK(parsed({"--scale-kernels", "--latency", "1us"}).scale_kernels == costs::kAsHardware);
}

TEST_CASE("times, plans and trust are named by options") {
  models::TimeOptions times;
  plans::PlanOptions plan;
  plans::Trust trust;
  CLI::App app;
  requests::Fields fields;
  requests::add(fields, times);
  requests::add(fields, plan);
  requests::add(fields, trust);
  bind(app, fields);
  app.parse(std::vector<std::string>{"--trust-plan", "--no-bulk", "0.5", "--density", "2ms",
                                     "--bulk-wait", "10ms", "--forward", "50ms", "--compute-time"});
  CHECK(times.compute_time == "50ms");
  CHECK(times.forward == "10ms");
  CHECK(plan.bulk_wait == "2ms");
  CHECK(plan.density == 0.5);
  CHECK(plan.no_bulk);
  CHECK(trust.everything);
}

}  // namespace
}  // namespace hipress::tools
