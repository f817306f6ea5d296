#include "planner/advice/settings.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/problem/levels.hpp"
#include "requests/candidates.hpp"
#include "requests/simulate.hpp"

using namespace hipress;
using namespace hipress::requests;
using Catch::Contains;

namespace {

PlanRequest job_on(const char* machine, std::uint32_t hosts) {
  PlanRequest request;
  request.request.machines.machine = machine;
  request.request.machines.hosts = hosts;
  return request;
}

/// Rows with buckets in PyTorch's table of DDP steps (VLDB 2020): measured times by (model, GPUs)
/// and by bucket_cap_mb.
std::map<std::pair<std::string, int>, std::map<std::string, double>> published() {
  std::ifstream file(std::string(HIPRESS_SOURCE_DIR) + "/models/data/gpu_steps.csv");
  std::map<std::pair<std::string, int>, std::map<std::string, double>> found;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("pytorch_ddp_v100,") || line.find(",ddp,") == std::string::npos) continue;
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string one; std::getline(in, one, ',');) fields.push_back(one);
    found[{fields[3], std::stoi(fields[7])}][fields[13]] = std::stod(fields[15]);
  }
  return found;
}

planner::Setting caps_of(const std::string& model, int gpus) {
  PlanRequest request = job_on("dgx-1", gpus > 8 ? 2 : 1);
  request.request.input = model;
  request.request.machines.gpus = static_cast<std::uint32_t>(gpus);
  request.request.times.batch = 32;
  const auto prepared = prepare(request, {});
  return planner::bucket_cap(prepared->problem);
}

double time_of(const planner::Setting& setting, const std::string& value) {
  for (const planner::SettingTime& one : setting.times) {
    if (one.value == value) return one.iteration_s;
  }
  FAIL(value << " was not simulated");
  return 0;
}

}  // namespace

TEST_CASE("buckets of 25 MiB beat those of 1 MiB wherever PyTorch measured it") {
  const auto table = published();
  REQUIRE(table.size() == 10);  // two models on 1, 2, 4, 8 and 16 GPUs
  for (const auto& [job, measured] : table) {
    INFO(job.first << " on " << job.second);
    REQUIRE(measured.at("25") < measured.at("1"));
    const planner::Setting caps = caps_of(job.first, job.second);
    CHECK(time_of(caps, "25") < time_of(caps, "1"));
    CHECK(caps.times.front().value == "25");
  }
}

TEST_CASE("a setting is advised if it saves something, and the default is kept if not") {
  planner::Setting setting = {.name = "bucket_cap_mb", .times = {{"25", 1.0}, {"1", 1.2}}};
  CHECK(setting.best().value == "25");
  CHECK_THAT(describe(setting), Contains("bucket_cap_mb 25, as now, is best: 1s, 1 +20.0 %"));
  setting.times.push_back({"100", 0.999});  // 0.1 % less time is not worth a change
  CHECK(setting.best().value == "25");
  setting.times.push_back({"250", 0.9});
  CHECK_THAT(describe(setting), Contains("bucket_cap_mb 250 saves 10.0 % of 1s with 25"));
  setting.times.resize(1);
  CHECK(describe(setting).empty());
}

TEST_CASE("FSDP that wraps the whole model hides nothing") {
  PlanRequest request = job_on("dgx-a100", 2);
  request.request.input = "gpt2_xl";
  request.request.times.batch = 4;
  request.request.times.seq = 1024;
  request.request.times.dtype = "mixed";
  request.schedules = {"fsdp"};
  const auto prepared = prepare(request, {});
  const planner::GpuProblem on_gpus(prepared->problem);
  const planner::Setting wrapping = planner::fsdp_wrapping(on_gpus.problem());
  REQUIRE(wrapping.times.size() >= 2);
  CHECK(wrapping.times.front().value == "each layer");
  CHECK(time_of(wrapping, "the whole model") > 1.02 * time_of(wrapping, "each layer"));
}

TEST_CASE("simulations of smaller buckets have DDP's time for them") {
  SimulateRequest request;
  request.input = "resnet50";
  request.plan = "ddp";
  request.machines.machine = "dgx-1";
  request.machines.hosts = 1;
  request.machines.gpus = 1;
  request.times.batch = 32;
  const auto step_s = [&] {
    return casync::to_seconds(simulate(request, {}).prediction.iteration);
  };
  const double default_s = step_s();
  request.plan = "none";
  request.topology = "allreduce";
  request.plan_options.bulk_threshold = request.plan_options.bulk_limit = "1MiB";
  // There are 32 more buckets, for which one GPU sends nothing. PyTorch measured 1 ms more.
  CHECK(step_s() - default_s == Approx(32 * planner::kBucketTime_s));
  request.times.per_gradient = "0us";  // without DDP, buckets cost nothing
  CHECK(step_s() < default_s);
}
