#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "casync/layout.hpp"
#include "costs/starter_profile.hpp"
#include "io/error.hpp"
#include "planner/analysis/verdict.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/problem/levels.hpp"
#include "planner/problem/state_memory.hpp"
#include "planner/schedules/scheduled.hpp"
#include "planner/search/shards.hpp"
#include "sim/folding.hpp"
#include "tests/planner/tool_run.hpp"

namespace hipress::planner {
namespace {

using Catch::Matchers::Contains;

/// Model of a transformer in bf16 with four tensors per layer and a step of `step_s`.
models::Model transformer(int layers, std::int64_t width, double step_s) {
  models::Model model;
  model.name = "transformer";
  model.forward_s = step_s / 3;
  for (int layer = layers; layer-- > 0;) {
    for (const char* tensor : {"attention", "up", "down", "out"}) {
      model.gradients.push_back(
          {.name = "layers." + std::to_string(layer) + "." + tensor + ".weight",
           .elements = 3 * width * width,
           .ready_s = 2 * step_s / 3 * (layers - layer) / layers,
           .dtype = models::Dtype::kBfloat16});
    }
  }
  return model;
}

struct Job {
  Job(models::Model its_model, std::uint32_t hosts, double link)
      : model(std::move(its_model)), machines{profile, {}} {
    costs::Cluster& cluster = machines.cluster;
    cluster.nodes = hosts;
    cluster.gpus_per_node = 8;
    cluster.gpu_link = {5e-6, 3e11};
    cluster.link = {
        .overhead_s = 1e-5, .bandwidth = link, .bandwidth_both_ways = link, .latency_s = 5e-6};
    for (std::uint32_t host = 0; host < hosts; ++host) cluster.host.push_back(host);
    cluster.compute_speed.assign(hosts, 1);
  }
  Problem problem() const {
    return {.model = model,
            .topology = "best",
            .nodes = machines.cluster.nodes,
            .algorithms = {"int8block", "int4block"},
            .machines = &machines};
  }

  costs::Profile profile = costs::read_profile("h100-400g");
  models::Model model;
  Machines machines;
};

double step_of(const Problem& problem, const casync::Plan& plan) {
  return simulated_iteration_s(problem.model, plan, *problem.machines);
}

/// The job's problem with every GPU as a node, under the schedule.
Problem with(const GpuProblem& gpus, const casync::Schedule& schedule,
             const std::string& shards_by = "library") {
  Problem problem = gpus.problem();
  problem.topology = "allreduce";
  problem.schedule = schedule;
  problem.shards_by = shards_by;
  return problem;
}

ScheduledPlan plan_schedule(const Problem& problem, const casync::Schedule& schedule,
                            const std::string& shards_by = "library") {
  const GpuProblem gpus(problem);
  const Problem sharded = with(gpus, schedule, shards_by);
  SearchResult found = search_shards(sharded);
  ScheduledPlan made = figures_of(sharded, std::move(found.plan));
  made.lower_bound_s = found.lower_bound_s;
  return made;
}

std::vector<Baseline> baselines_of(const Problem& problem,
                                   const std::string& shards_by = "library") {
  const GpuProblem gpus(problem);
  const Problem sharded = with(gpus, casync::Schedule::parse("fsdp"), shards_by);
  std::vector<Baseline> all = simulate_baselines(sharded, *sharded.machines);
  std::erase_if(all, [](const Baseline& one) { return one.row().kind != JobKind::kSharding; });
  return all;
}

casync::Plan zeropp(const Problem& problem) { return find_baseline("zeropp")->make(problem); }

TEST_CASE("a sharded plan compresses where the network bounds, and nothing where it does not") {
  const casync::Schedule schedule = casync::Schedule::parse("fsdp");
  const Job slow(transformer(8, 2048, 0.5), 4, 1.25e9);
  const GpuProblem on_gpus(slow.problem());
  CHECK(on_gpus.problem().nodes == 32);
  const ScheduledPlan plan = plan_schedule(slow.problem(), schedule);
  CHECK(plan.plan.nodes == 32);
  CHECK(plan.compressed > 0);
  casync::Plan raw = plan.plan;
  raw.gathers.clear();
  raw.exchange_within = 1;
  raw.decisions.assign(raw.decisions.size(), {});
  const double raw_s = step_of(on_gpus.problem(), raw);
  CHECK(plan.iteration_s < 0.8 * raw_s);
  CHECK(plan.lower_bound_s > 0.7 * plan.iteration_s);
  // One form for all layers may not beat the plan by more than twice the tolerance.
  for (const std::int8_t gather : {casync::kRaw, std::int8_t{0}, std::int8_t{1}}) {
    for (const std::int8_t reduce : {casync::kRaw, std::int8_t{0}, std::int8_t{1}}) {
      for (const std::uint32_t within : {1u, 8u}) {
        raw.gathers.assign(raw.decisions.size(), gather);
        raw.decisions.assign(raw.decisions.size(), {.algorithm = reduce});
        raw.exchange_within = within;
        const double time_s = step_of(on_gpus.problem(), raw);
        CHECK(time_s * (1 + 2 * kTolerance) >= plan.iteration_s);
        CHECK(time_s >= plan.lower_bound_s);
      }
    }
  }
  for (const char* other : {"fsdp(reshard=8)", "fsdp(reshard=false)", "hsdp(shard=8)",
                            "fsdp(communicators=separate)", "fsdp(prefetch=none)"}) {
    const ScheduledPlan found = plan_schedule(slow.problem(), casync::Schedule::parse(other));
    CHECK(found.lower_bound_s <= found.iteration_s);
    CHECK(found.lower_bound_s > 0.4 * found.iteration_s);
  }
  const Job fast(transformer(8, 2048, 5), 4, 5e10);
  CHECK(plan_schedule(fast.problem(), schedule).compressed == 0);
}

TEST_CASE("a plan of shards in messages is searched, and compared, by what carries them") {
  const Job job(transformer(2, 512, 0.01), 1, 1.25e9);
  const GpuProblem on_gpus(job.problem());
  for (const std::string shards_by : {"ring", "direct"}) {
    CAPTURE(shards_by);
    const auto schedule = casync::Schedule::parse("fsdp");
    const ScheduledPlan found = plan_schedule(job.problem(), schedule, shards_by);
    CHECK(found.plan.shards_by == shards_by);
    CHECK(found.lower_bound_s == 0);  // unknown for messages
    CHECK(found.iteration_s == step_of(on_gpus.problem(), found.plan));
    // Without compression, messages of gathers are fp32, and those of reductions are cast.
    casync::Plan raw = found.plan;
    raw.algorithms = {algorithm("bf16")};
    raw.gathers.clear();
    raw.decisions.assign(raw.decisions.size(), {.algorithm = 0});
    CHECK(found.iteration_s <= step_of(on_gpus.problem(), raw) * (1 + kTolerance));
    casync::Plan by_library = found.plan;
    by_library.shards_by = "library";
    CHECK(found.iteration_s != step_of(on_gpus.problem(), by_library));
    // FSDP2 sends the model in bf16, its own dtype. In messages, raw values would be fp32.
    const std::vector<Baseline> baselines = baselines_of(job.problem(), shards_by);
    raw.gathers.assign(raw.decisions.size(), 0);
    CHECK(baselines.front().iteration_s == step_of(on_gpus.problem(), raw));
    for (const Baseline& one : baselines) CHECK(one.plan.shards_by == shards_by);
  }
}

TEST_CASE("what stays raw of half precision travels in messages as it is stored") {
  const Job job(transformer(2, 512, 0.01), 1, 1.25e9);
  Problem problem = job.problem();
  problem.algorithms.clear();
  const auto schedule = casync::Schedule::parse("fsdp");
  const ScheduledPlan found = plan_schedule(problem, schedule, "ring");
  CHECK(found.compressed == 0);
  CHECK(found.given_up == Coarseness{});
  // A step has two gathers and a reduction of 2 bytes per parameter. A rank sends 7 of 8 parts.
  const double parameters = 2 * 4 * 3.0 * 512 * 512;
  CHECK(found.traffic.bytes_per_step == 3 * 2 * parameters * 7 / 8);

  models::Model mixed = problem.model;
  mixed.gradients.front().dtype = models::Dtype::kFloat32;  // belongs to the last layer
  casync::Plan plan = found.plan;
  plan.algorithms.clear();
  plan.gathers.clear();
  plan.decisions.assign(plan.decisions.size(), {});
  send_as_stored(mixed, plan);
  REQUIRE(plan.algorithms.size() == 1);
  CHECK(plan.algorithms.front().name == "bf16");
  CHECK(plan.gather_of(0) == casync::kRaw);
  CHECK(plan.gather_of(7) == 0);
  CHECK(plan.decisions[3].algorithm == casync::kRaw);
  CHECK(plan.decisions[4].algorithm == 0);
  CHECK_NOTHROW(casync::make_layout(mixed, plan));
}

TEST_CASE("layers with gradients of several types are planned, and planned as they are simulated",
          "[tool]") {
  const Workplace place;
  place.write("mixed.yaml",
              "name: mixed\ndtype: bfloat16\nforward: 3ms\ngradients:\n"
              "- {name: l.1.router, elements: 4096, ready: 2ms, dtype: float32}\n"
              "- {name: l.1.weight, elements: 1000003, ready: 2ms}\n"
              "- {name: l.0.scale, elements: 1, ready: 4ms, dtype: float32}\n"
              "- {name: l.0.weight, elements: 1000003, ready: 4ms}\n"
              "- {name: head.weight, elements: 500009, ready: 1ms}\n");
  const std::string job = "--input mixed.yaml --profile h100-100g --bandwidth 1Gbps --nnodes 4 ";
  for (const char* how :
       {"--algorithm none --schedule fsdp", "--algorithm fp16,bf16 --schedule fsdp",
        "--algorithm int8block --schedule 'hsdp(shard=2)'",
        "--algorithm none --schedule fsdp --shards-by ring",
        "--algorithm none --schedule 'hsdp(shard=1)' --shards-by direct",
        "--algorithm bf16,int4block --schedule 'fsdp(prefetch=post)' --shards-by direct"}) {
    CAPTURE(how);
    const ToolRun planned = place.run("hipress-plan " + job + how +
                                      " --evaluations 60 --json --write fastest --output p.yaml");
    INFO(planned.err);
    REQUIRE(planned.status == 0);
    const ToolRun simulated = place.run("hipress-sim --json " + job + "--plan p.yaml");
    INFO(simulated.err);
    REQUIRE(simulated.status == 0);
    const auto plan = nlohmann::json::parse(planned.out);
    const auto sim = nlohmann::json::parse(simulated.out);
    CHECK(plan.at("predicted_iteration_s") == sim.at("iteration_s"));
    CHECK(plan.at("bytes_per_step") == sim.at("bytes_per_step"));
  }
}

TEST_CASE("what plans of schedules know nothing of is refused or said", "[tool]") {
  const Workplace place;
  const std::string job =
      "hipress-plan --input resnet50 --profile h100-100g --nnodes 4 --output p.yaml ";
  for (const char* option :
       {"--search timeline", "--grouping any", "--transfer-order need", "--seed 3",
        "--disable-pass scheme", "--network port", "--topology ring"}) {
    CAPTURE(option);
    const std::string text(option);
    const std::string name = text.substr(0, text.find(' '));
    CHECK_THAT(place.run(job + "--schedule fsdp " + option).err, Contains(name + " has no effect"));
    CHECK_THAT(place.run(job + "--schedule fsdp").err, !Contains("has no effect"));
  }
  // With messages the network matters, and with ddp the topology.
  CHECK_THAT(place.run(job + "--schedule fsdp --shards-by ring --network port").err,
             !Contains("has no effect"));
  CHECK_THAT(place.run(job + "--schedule fsdp --schedule ddp --topology ring").err,
             !Contains("has no effect"));
  CHECK_THAT(place.run(job + "--schedule fsdp --algorithm powersgd,int8block").err,
             Contains("powersgd is left out: it cannot encode shards independently of each other"));
  const std::string sim = "hipress-sim --input resnet50 --profile h100-100g --nnodes 4 ";
  CHECK_THAT(place.run(sim + "--plan zeropp --algorithm onebit").err,
             Contains("--algorithm has no effect"));
  CHECK_THAT(place.run(sim + "--plan none --schedule fsdp --raw-allreduce").err,
             Contains("--raw-allreduce has no effect"));
  const ToolRun best = place.run(sim + "--plan best --schedule fsdp");
  CHECK(best.status == 2);
  CHECK_THAT(best.err, Contains("write one with hipress-plan --schedule"));
}

TEST_CASE("each collective whose cost is an estimate is named", "[tool]") {
  const Workplace place;
  std::string profile = costs::starter_profile("h100-100g").value();
  const std::string curve = "{pieces: [{from: 0, a_s: 1e-5, s_per_byte: 1e-9}]}";
  const std::string::size_type links = profile.find("\nlinks: {") + 9;
  std::string measured;
  for (const char* name : {"all_gather", "reduce_scatter", "all_to_all"}) {
    measured += fmt::format("{}: {{2: {}, 8: {}}}, ", name, curve, curve);
  }
  place.write("measured.yaml", profile.insert(links, measured));
  const std::string job = "--input resnet50 --profile measured.yaml ";
  const std::string sim = "hipress-sim --plan none " + job;
  CHECK_THAT(place.run(sim + "--nnodes 8 --schedule fsdp").err, !Contains("not measured"));
  CHECK_THAT(place.run(sim + "--nnodes 4 --schedule fsdp").err,
             Contains("all-gather of 4 nodes was not measured: interpolated between 2 and 8"));
  // Shards are gathered among 2 nodes. Means are among 8 nodes here, and 4 in the next run.
  CHECK_THAT(place.run(sim + "--nnodes 16 --schedule 'hsdp(shard=2)'").err,
             !Contains("not measured"));
  CHECK_THAT(place.run(sim + "--nnodes 8 --schedule 'hsdp(shard=2)'").err,
             Contains("all-gather of 4 nodes was not measured"));
  CHECK_THAT(place.run("hipress-sim --plan zeropp --nnodes 16 " + job).err,
             Contains("all-gather of 16 nodes was not measured: extrapolated from 8") &&
                 Contains("all-to-all of 16 nodes was not measured: extrapolated from 8"));
  CHECK_THAT(place.run("hipress-plan --nnodes 4 --schedule fsdp --output p.yaml " + job).err,
             Contains("all-gather of 4 nodes was not measured"));
}

TEST_CASE("ZeRO++ is quicker than ZeRO-3 on a slow network, and as quick on a fast one") {
  for (const bool slow : {true, false}) {
    const Job job(transformer(8, 2048, slow ? 0.5 : 5), 4, slow ? 1.25e9 : 5e10);
    const GpuProblem on_gpus(job.problem());
    casync::Plan plan = zeropp(on_gpus.problem());
    CHECK(plan.schedule.text() == "fsdp(reshard=8)");
    CHECK(plan.exchange_within == 8);
    const double fewer_bits_s = step_of(on_gpus.problem(), plan);
    plan.schedule = casync::Schedule::parse("fsdp");
    plan.gathers.clear();
    plan.decisions.assign(plan.decisions.size(), {});
    plan.exchange_within = 1;
    const double ratio = step_of(on_gpus.problem(), plan) / fewer_bits_s;
    CAPTURE(ratio);
    CHECK((slow ? ratio > 2 : std::abs(ratio - 1) < 0.02));
  }
}

TEST_CASE("parameters are gathered in block formats, casts and lossless codecs alone") {
  const Job job(transformer(2, 64, 1), 1, 1e9);
  const Problem problem = job.problem();
  for (const char* fine : {"fp16", "bf16", "int8block", "fp8block", "int4block", "lossless"}) {
    CHECK(may_gather(problem, fine));
  }
  for (const char* coarse : {"onebit", "terngrad", "dgc", "graddrop", "tbq"}) {
    CHECK_FALSE(may_gather(problem, coarse));
  }
}

TEST_CASE("what a sharded plan gives up counts gathers and how often reductions are encoded") {
  const Job job(transformer(2, 64, 1), 4, 1e9);
  const GpuProblem on_gpus(job.problem());
  casync::Plan plan = zeropp(on_gpus.problem());
  const Coarseness both = coarseness_of(on_gpus.problem(), plan);
  CHECK(both.encodings == 2);  // int4block encodes twice in its reductions
  plan.decisions.assign(plan.decisions.size(), {});
  const Coarseness gathers = coarseness_of(on_gpus.problem(), plan);
  CHECK(gathers < both);
  CHECK(gathers.encodings == 1);
  plan.gathers.clear();
  CHECK(coarseness_of(on_gpus.problem(), plan) == Coarseness{});
}

TEST_CASE("a schedule of a set that does not fit the nodes is left out") {
  const Job job(transformer(2, 64, 1), 4, 1e9);
  const auto why = [&](const char* schedule) {
    return refusal_of_nodes(job.problem(), casync::Schedule::parse(schedule));
  };
  CHECK(why("hsdp(shard=8)").empty());
  CHECK(why("ddp").empty());
  CHECK_THAT(why("hsdp(shard=5)"), Contains("shard=5 does not divide 32 nodes"));
  CHECK(why("hsdp(shard=4)").empty());
  CHECK(why("hsdp(shard=16, reshard=4)").empty());
  // With 24 GPUs on hosts of 8, every second group of 12 begins in the middle of a host.
  const Job three(transformer(2, 64, 1), 3, 1e9);
  CHECK_THAT(refusal_of_nodes(three.problem(), casync::Schedule::parse("hsdp(shard=12)")),
             Contains("groups of 12 nodes, 1 apart, are on hosts of 8 in different ways; give "
                      "numbers (shard, reshard"));
}

TEST_CASE("memory is counted by schedule and optimizer") {
  const models::Model model = transformer(4, 1024, 1);
  const std::int64_t layer = 12 * 1024 * 1024, all = 4 * layer;  // number of parameters
  casync::Plan plan{.topology = "allreduce", .nodes = 8, .algorithms = {}, .decisions = {}};
  plan.decisions.resize(model.gradients.size());
  const auto memory = [&](const char* schedule, const char* optimizer = "adamw") {
    plan.schedule = casync::Schedule::parse(schedule);
    return state_memory(model, plan, find_optimizer(optimizer));
  };
  CHECK(memory("ddp").total() == 2 * all + 2 * all + 12 * all);
  CHECK(memory("ddp", "sgd").total() == 2 * all + 2 * all + 4 * all);
  CHECK(memory("local(steps=10)").total() == 16 * all + 8 * all);
  const StateMemory sharded = memory("fsdp");
  CHECK(sharded.parameters == 2 * all / 8);
  CHECK(sharded.gradients == 2 * all / 8);
  CHECK(sharded.optimizer == 12 * all / 8);
  CHECK(sharded.gathered == 2 * 2 * layer);
  CHECK(sharded.reductions == 2 * 2 * layer);
  CHECK(memory("fsdp(reshard=false)").gathered == 2 * all);
  CHECK(memory("fsdp(in_flight=3)").gathered == 3 * 2 * layer);
  CHECK(memory("fsdp(reshard=4)").gathered == 2 * 2 * layer + 2 * all / 4);
  CHECK(memory("hsdp(shard=4)").parameters == 2 * all / 4);
  CHECK(memory("fsdp(reshard=8)").total() == sharded.total());
  CHECK(memory("hsdp(shard=1)").total() == memory("ddp").total());
  CHECK_THROWS_WITH(find_optimizer("lion"), Contains("known are adamw, adamw8bit, momentum, sgd"));
}

TEST_CASE("what does not fit into memory is not chosen") {
  std::vector<ScheduledPlan> plans(3);
  for (std::size_t i = 0; i < 3; ++i) {
    plans[i].iteration_s = 1.0 + static_cast<double>(i);
    plans[i].memory.parameters = 300 - 100 * static_cast<std::int64_t>(i);
  }
  CHECK(choose_schedule(plans, 0.005) == 0);
  CHECK(choose_schedule(plans, 0.005, 299) == 1);
  CHECK(choose_schedule(plans, 0.005, 100) == 2);
  CHECK_THROWS_WITH(choose_schedule(plans, 0.005, 99),
                    Contains("nothing fits into `gpu_memory`: 100B at least"));
}

TEST_CASE("why a schedule is not chosen is said") {
  ScheduledPlan chosen, other;
  chosen.iteration_s = 1;
  chosen.memory.parameters = other.memory.parameters = 10;
  other.iteration_s = 1.125;
  CHECK(reason_against(other, chosen, 20) == "takes 12.5 % longer");
  CHECK(reason_against(other, chosen, 9) == "does not fit: 10B of a GPU's 9B");
  other.given_up.place = 2;
  CHECK(reason_against(other, chosen, 20) == "takes 12.5 % longer and gives up more");
  other.iteration_s = 0.996;
  CHECK(reason_against(other, chosen, 20) == "gives up more and saves 0.4 %");
  other.given_up = {};
  CHECK(reason_against(other, chosen, 20) == "is as fast within the tolerance");
  other.memory.parameters = 15;
  CHECK(reason_against(other, chosen, 20) ==
        "takes 5B more memory, and is as fast within the tolerance");
}

std::vector<std::string> names_of(const std::vector<Baseline>& baselines) {
  std::vector<std::string> names;
  for (const Baseline& one : baselines) names.emplace_back(one.name);
  return names;
}

TEST_CASE("sharded plans are compared with FSDP2, FSDP1, HSDP and ZeRO++ as they come") {
  Job job(transformer(4, 1024, 0.1), 4, 1.25e9);
  const std::vector<Baseline> in_bf16 = baselines_of(job.problem());
  CHECK(names_of(in_bf16) ==
        std::vector<std::string>{"fsdp2", "fsdp1", "fsdp1_post", "hsdp", "zeropp"});
  const GpuProblem gpus(job.problem());
  casync::Plan raw = {.topology = "allreduce", .nodes = 32, .algorithms = {}, .decisions = {}};
  raw.decisions.resize(job.model.gradients.size());
  raw.schedule = casync::Schedule::parse("fsdp");
  CHECK(in_bf16[0].iteration_s == step_of(gpus.problem(), raw));
  CHECK(in_bf16[1].iteration_s == in_bf16[0].iteration_s);
  CHECK(*in_bf16[2].iteration_s >= *in_bf16[0].iteration_s);
  CHECK(in_bf16[3].plan.schedule.text() == "hsdp(shard=8)");
  CHECK(in_bf16[4].iteration_s == step_of(gpus.problem(), zeropp(gpus.problem())));

  // FSDP2 with (free) casts sends as much for a model in fp32 as without casts for one in bf16.
  for (models::Gradient& gradient : job.model.gradients) gradient.dtype = models::Dtype::kFloat32;
  const std::vector<Baseline> in_fp32 = baselines_of(job.problem());
  CHECK(names_of(in_fp32) == std::vector<std::string>{"fsdp2", "fsdp2_bf16", "fsdp2_mixed", "fsdp1",
                                                      "fsdp1_post", "hsdp", "hsdp_bf16",
                                                      "hsdp_mixed", "zeropp"});
  CHECK(*in_fp32[0].iteration_s > 1.5 * *in_fp32[1].iteration_s);
  CHECK(*in_fp32[1].iteration_s == Approx(*in_bf16[0].iteration_s).epsilon(1e-2));
  // Two gathers and a reduction send 3 · 4 bytes a parameter in fp32, 2 · 2 + 4 with bf16 gathers.
  const auto bytes = [&](const Baseline& one) {
    return figures_of(gpus.problem(), one.plan).traffic.bytes_per_step;
  };
  CHECK(bytes(in_fp32[2]) == Approx(bytes(in_fp32[0]) * 2 / 3).epsilon(1e-3));
  // Gathered parameters and gradients from backward have 2 bytes in bf16, fp32 reductions 4.
  const StateMemory& whole = in_fp32[0].memory;
  CHECK(in_fp32[1].memory.gathered == whole.gathered / 2);
  CHECK(in_fp32[1].memory.reductions == whole.reductions / 2);
  CHECK(in_fp32[2].memory.gathered == whole.gathered / 2);
  CHECK(in_fp32[2].memory.reductions == whole.reductions * 3 / 4);
  CHECK(in_fp32[1].memory.optimizer == whole.optimizer);

  const Job one_host(transformer(2, 64, 0.1), 1, 1.25e9);
  CHECK(names_of(baselines_of(one_host.problem())) ==
        std::vector<std::string>{"fsdp2", "fsdp1", "fsdp1_post", "zeropp"});
}

/// Baselines and a plan with given times, to be judged.
struct Beside {
  const Job job{transformer(2, 64, 1), 4, 1e9};
  const GpuProblem gpus{job.problem()};
  Problem problem = with(gpus, casync::Schedule::parse("fsdp(communicators=separate)"));
  casync::Plan plan = raw("fsdp(communicators=separate)");
  std::vector<Baseline> baselines;

  casync::Plan raw(const char* schedule) const {
    casync::Plan made = {.topology = "allreduce", .nodes = 32, .algorithms = {}, .decisions = {}};
    made.decisions.resize(problem.model.gradients.size());
    made.schedule = casync::Schedule::parse(schedule);
    return made;
  }
  void compress(casync::Plan& made, const char* name) const {
    made.algorithms = {algorithm(name)};
    made.decisions.assign(made.decisions.size(), {.algorithm = 0});
  }
  void add(std::string_view name, double time_s, const char* schedule = "fsdp") {
    const BaselineRow* const row = find_baseline(name);
    Baseline made{
        .name = row->name, .plan = raw(schedule), .iteration_s = time_s, .diagnostic = {}};
    made.response = {.time_s = time_s, .links_s = time_s};
    made.memory = memory_of(problem, made.plan);
    if (row->compresses) compress(made.plan, "int4block");
    baselines.push_back(made);
  }
  Verdict verdict(double links = 0.1, double time_s = 1) const {
    Comparison comparison{.planned_s = time_s,
                          .planned = sim::Response{.time_s = time_s, .links_s = time_s},
                          .baselines = baselines,
                          .spread = {.links = links, .model = 0.03}};
    for (const Baseline& one : baselines) {
      if (problem.memory_bytes < one.memory.total()) continue;
      const Contender contender{.name = std::string(one.name),
                                .plan = {one.plan, {}, *one.iteration_s},
                                .response = one.response};
      std::optional<Contender>& best =
          compresses(problem.model, one.plan) ? comparison.elsewhere : comparison.uncompressed;
      if (!best || best->plan.iteration_s > *one.iteration_s) best = contender;
    }
    if (compresses(problem.model, plan)) {
      comparison.compressed =
          Contender{.name = {}, .plan = {plan, {}, time_s}, .response = comparison.planned};
    }
    return judge(problem, plan, comparison);
  }
};

TEST_CASE("a sharded plan whose interval is wider than a factor of 3 is too uncertain") {
  Beside beside;
  beside.add("fsdp2", 2);
  beside.compress(beside.plan, "int8block");
  const Verdict compressed = beside.verdict(1);  // p90/p10 = exp(2 · 1.28 · 1) = 13
  CHECK(compressed.answer == Answer::kTooUncertain);
  CHECK_THAT(compressed.sentence, Catch::StartsWith("too uncertain: ") && !Contains("% sure"));
  beside.plan = beside.raw("fsdp(communicators=separate)");
  beside.add("zeropp", 0.5, "fsdp(reshard=8)");
  CHECK(beside.verdict(1).answer == Answer::kTooUncertain);
}

TEST_CASE(
    "a sharded plan that compresses is measured by what jobs run, and by the best without it") {
  Beside beside;
  beside.compress(beside.plan, "int8block");
  beside.add("fsdp2", 2);
  const Verdict over_default = beside.verdict();
  CHECK(over_default.answer == Answer::kCompress);
  CHECK(over_default.probability.value() > 0.99);
  CHECK_THAT(over_default.sentence,
             Contains("compress (99 % sure): int8block (8.1 bits a value) for 8 of 8 reductions") &&
                 Contains("; fsdp(communicators=separate) takes 1s") &&
                 Contains("saves 1s of 2s (50.0 %") && Contains("over FSDP2 by default"));
  beside.add("hsdp", 1.003, "hsdp(shard=8)");
  const Verdict over_hsdp = beside.verdict();
  CHECK(over_hsdp.answer == Answer::kDoNotCompress);
  CHECK_THAT(over_hsdp.sentence, Contains("HSDP (give `schedule` 'hsdp(shard=8)') takes 1.003s") &&
                                     Contains("saving 0.3 % is not worth its loss") &&
                                     Contains("FSDP2 by default takes 2s"));
  // Compression must also be surely faster than what a framework runs without it.
  beside.baselines.back().iteration_s = 1.02;
  beside.baselines.back().response = {.time_s = 1.02, .links_s = 1.02};
  CHECK(beside.verdict().answer == Answer::kTooClose);
  CHECK_THAT(beside.verdict().sentence, Contains("HSDP 1.02s"));
  beside.baselines.back().iteration_s = 1.25;
  beside.baselines.back().response = {.time_s = 1.25, .links_s = 1.25};
  const Verdict over_both = beside.verdict();
  CHECK(over_both.answer == Answer::kCompress);
  CHECK_THAT(over_both.sentence, Contains("saves 1s of 2s (50.0 %") &&
                                     Contains("and 250ms of 1.25s (20.0 %") &&
                                     Contains("over HSDP"));
  beside.problem.today = "hsdp";
  CHECK_THAT(beside.verdict().sentence, Contains("saves 250ms of 1.25s") && !Contains("of 2s"));
  beside.problem.memory_bytes = beside.baselines.back().memory.total() - 1;
  beside.problem.today = {};  // a baseline that does not fit is no rival
  beside.baselines.back().iteration_s = 0.9;
  CHECK_THAT(beside.verdict().sentence, Contains("which does not fit"));
  beside.problem.memory_bytes = 9;
  CHECK_THAT(beside.verdict().sentence, Contains("no plan without compression fits"));
}

TEST_CASE("a sharded plan that compresses nothing is laid beside what frameworks run") {
  Beside beside;
  beside.add("fsdp2", 1.3);
  beside.add("zeropp", 0.999, "fsdp(reshard=8)");
  const Verdict raw = beside.verdict();
  CHECK(raw.answer == Answer::kDoNotCompress);
  CHECK_THAT(raw.sentence, Contains("do not compress: fsdp(communicators=separate) takes 1s") &&
                               Contains("FSDP2 by default takes 1.3s") &&
                               Contains("ZeRO++ takes 999ms"));
  beside.baselines.pop_back();
  beside.add("zeropp", 0.5, "fsdp(reshard=8)");
  const Verdict elsewhere = beside.verdict();
  CHECK(elsewhere.answer == Answer::kCompress);
  CHECK_THAT(elsewhere.sentence,
             Contains("compress, but with another plan (99 % sure): ZeRO++ (give `schedule` "
                      "'fsdp(reshard=8)' and `algorithm` int4block) takes 500ms"));
  // If a baseline without compression is faster than ZeRO++, ZeRO++ is no reason to compress.
  beside.add("hsdp", 0.4, "hsdp(shard=8)");
  CHECK(beside.verdict().answer == Answer::kDoNotCompress);
  CHECK_THAT(beside.verdict().sentence,
             Contains("HSDP (give `schedule` 'hsdp(shard=8)') takes 400ms") &&
                 Contains("this plan, also uncompressed, 1s") && Contains("ZeRO++ takes 500ms") &&
                 Contains("less than this plan"));
}

TEST_CASE("a verdict names first the row that beats its plan in time and memory") {
  Beside beside;
  beside.plan = beside.raw("hsdp(shard=8, reshard=false)");
  beside.problem.schedule = beside.plan.schedule;
  beside.add("fsdp2", 0.99);
  const Verdict verdict = beside.verdict();
  CHECK(verdict.answer == Answer::kDoNotCompress);
  CHECK_THAT(verdict.sentence,
             Catch::StartsWith("do not compress: FSDP2 by default (`schedule` fsdp) takes 990ms") &&
                 Contains("of a GPU's memory, this plan 1s") && Contains("gives up no more"));
  beside.baselines.clear();
  beside.add("hsdp", 0.9, "hsdp(shard=4, reshard=false)");  // takes more memory than the plan
  CHECK_THAT(beside.verdict().sentence, !Contains("gives up no more"));
}

TEST_CASE("a sharded plan that casts alone is no compression to advise") {
  Beside beside;
  beside.compress(beside.plan, "bf16");
  beside.add("fsdp2_bf16", 1.3);
  CHECK(beside.verdict().answer == Answer::kDoNotCompress);
  CHECK_THAT(beside.verdict().sentence,
             Contains("do not compress: fsdp(communicators=separate) takes 1s"));
  beside.add("zeropp", 0.5, "fsdp(reshard=8)");
  CHECK(beside.verdict().answer == Answer::kCompress);
  CHECK_THAT(beside.verdict().sentence, Contains("compress, but with another plan"));
}

TEST_CASE("a sharded plan's file holds what the verdict advises", "[tool]") {
  const Workplace place;
  const auto plan = [&](const char* bandwidth, const char* more) {
    const ToolRun done = place.run(fmt::format(
        "hipress-plan --input gpt2 --compute-time 200ms --profile h100-400g --nnodes 8 --bandwidth "
        "{} --schedule fsdp --algorithm int8block,int4block --json --output plan.yaml {}",
        bandwidth, more));
    REQUIRE(done.status == 0);
    return std::pair(nlohmann::json::parse(done.out), done.err);
  };
  const auto [slow, of_slow] = plan("1Gbps", "");
  CHECK(slow.at("advice") == "compress");
  CHECK_THAT(place.read("plan.yaml"), Contains("block"));
  // At 1 Tbit/s, 99 % of a step in bf16 is computation. Compression saves less than 0.5 %.
  const auto [fast, of_fast] = plan("1000Gbps", "");
  CHECK(fast.at("advice") == "do not compress");
  CHECK_THAT(of_fast,
             Contains("compresses nothing, as advised") && Contains("--write fastest writes it"));
  CHECK_THAT(place.read("plan.yaml"), Contains("schedule: fsdp") && !Contains("block"));
  CHECK(fast.at("schedules").at(0).at("predicted_iteration_s") == fast.at("predicted_iteration_s"));
  const auto [fastest, of_fastest] = plan("1000Gbps", "--write fastest");
  CHECK_THAT(of_fastest, !Contains("as advised"));
  CHECK_THAT(place.read("plan.yaml"), Contains("block"));
  CHECK(fastest.at("advice") == "do not compress");
}

TEST_CASE("hipress-plan and hipress-sim plan, write and read sharded schedules", "[tool]") {
  const Workplace place;
  place.write("gpus.yaml",
              "nodes: 4\ngpus_per_node: 8\ngpu_link: {bandwidth: 300GB/s, overhead: 5us}\n"
              "link: {bandwidth: 10Gbps, overhead: 10us, latency: 5us}\n");
  const std::string job =
      "--input gpt2 --compute-time 200ms --profile h100-400g --cluster gpus.yaml ";
  const ToolRun planned =
      place.run("hipress-plan " + job +
                "--algorithm int8block,int4block --json --gpu-memory 16GB "
                "--schedule ddp --schedule 'fsdp(reshard=true|8)' --output plan.yaml");
  REQUIRE(planned.status == 0);
  const auto answer = nlohmann::json::parse(planned.out);
  REQUIRE(answer.at("schedules").size() == 3);
  CHECK(answer.at("schedules")[1].at("peak_memory_bytes") <
        answer.at("schedules")[0].at("peak_memory_bytes"));
  CHECK(answer.at("peak_memory").at("gathered").get<std::int64_t>() >= 0);
  // The answer has all nine sharded baselines, even those in bf16 (gpt2 is in fp32), and DDP's.
  CHECK(answer.at("baselines").size() >= 12);
  CHECK(answer.at("baselines").at("fsdp2") >= answer.at("baselines").at("fsdp2_mixed"));
  CHECK(answer.at("baselines").at("fsdp2_mixed") >= answer.at("baselines").at("fsdp2_bf16"));
  CHECK(answer.at("baselines_p10").at("zeropp") < answer.at("baselines_p90").at("zeropp"));
  CHECK(answer.at("baseline_plans").size() == 12);
  CHECK(answer.at("advice_probability").is_number());
  CHECK_THAT(answer.at("verdict").get<std::string>(), Contains("compress"));
  const ToolRun text_form = place.run("hipress-plan " + job + "--schedule fsdp");
  CHECK_THAT(text_form.out, Contains("compared with\nddp: ddp ") && Contains("fsdp2: fsdp ") &&
                                Contains("ZeRO++"));
  const ToolRun of_ddp = place.run("hipress-plan " + job + "--gpu-memory 16GB --json");
  CHECK(nlohmann::json::parse(of_ddp.out).at("peak_memory_bytes") < 16'000'000'000);

  const std::string few = "--input gpt2 --compute-time 200ms --nnodes 4 --bandwidth 1Gbps ";
  const ToolRun by_ring = place.run(
      "hipress-plan " + few +
      "--algorithm int8block --json --schedule 'fsdp(reshard=true|false)' --shards-by RING "
      "--output ring.yaml");
  INFO(by_ring.err);
  REQUIRE(by_ring.status == 0);
  const auto of_ring = nlohmann::json::parse(by_ring.out);
  CHECK(of_ring.at("shards_by") == "ring");
  CHECK(of_ring.at("lower_bound_s").is_null());
  CHECK(of_ring.at("baseline_plans").back().at("shards_by") == "ring");
  CHECK_THAT(place.read("ring.yaml"), Contains("shards_by: ring"));
  const ToolRun of_plan = place.run("hipress-sim --json " + few + "--plan ring.yaml");
  CHECK(nlohmann::json::parse(of_plan.out).at("iteration_s").get<double>() ==
        Approx(of_ring.at("predicted_iteration_s").get<double>()));
  const ToolRun row = place.run("hipress-plan " + few + "--schedule fsdp --shards-by direct");
  CHECK_THAT(row.out, Contains(" direct "));
  CHECK(answer.at("schedules")[1].at("shards_by") == "library");
  CHECK(answer.at("schedules")[0].at("shards_by").is_null());  // ddp has no shards

  const ToolRun sharded = place.run(
      "hipress-plan " + job + "--algorithm int8block --json --schedule fsdp --output plan.yaml");
  REQUIRE(sharded.status == 0);
  const std::string text = place.read("plan.yaml");
  CHECK_THAT(text,
             Contains("schedule: fsdp") && Contains("nodes: 32") && Contains("gather: int8block"));
  const ToolRun simulated = place.run("hipress-sim --json " + job + "--plan plan.yaml");
  REQUIRE(simulated.status == 0);
  CHECK(nlohmann::json::parse(simulated.out).at("iteration_s").get<double>() ==
        Approx(nlohmann::json::parse(sharded.out).at("predicted_iteration_s").get<double>())
            .epsilon(1e-9));
  const ToolRun plus = place.run("hipress-sim " + job + "--plan zeropp --trace t.json");
  REQUIRE(plus.status == 0);
  CHECK_THAT(plus.out, Contains("fsdp(reshard=8)") && Contains("AllToAll") && Contains("NICs out"));
  CHECK_THAT(place.read("t.json"), Contains("AllGather transformer.h.0") &&
                                       Contains("\"gather\"") && Contains("\"reduce\""));

  // The plan YAML holds the rule: two layers for each of GPT-2's blocks, and one for the rest.
  const std::string wrapped = job + "--wrap 'transformer.h.*.attn, transformer.h.*.mlp' ";
  const ToolRun in_halves =
      place.run("hipress-plan " + wrapped +
                "--algorithm int8block --json --schedule fsdp --output halves.yaml");
  REQUIRE(in_halves.status == 0);
  const ToolRun halves = place.run("hipress-sim --json " + job + "--plan halves.yaml");
  REQUIRE(halves.status == 0);
  CHECK(nlohmann::json::parse(halves.out).at("iteration_s").get<double>() ==
        Approx(nlohmann::json::parse(in_halves.out).at("predicted_iteration_s").get<double>())
            .epsilon(1e-9));
  CHECK(nlohmann::json::parse(halves.out).at("iteration_s") !=
        nlohmann::json::parse(simulated.out).at("iteration_s"));
  CHECK_THAT(place.run("hipress-sim " + job + "--plan none --wrap 1M").err,
             Contains("--wrap has no effect: schedule ddp has no layers"));
  CHECK(place.run("hipress-sim " + job + "--plan none --wrap 1M --schedule fsdp").status == 0);

  const ToolRun rules =
      place.run("hipress-plan " + job +
                "--json --schedule fsdp --algorithm none --gpu-memory 700MB --wrap "
                "'transformer.h.*' --wrap 20M --wrap 20M --output w.yaml");
  REQUIRE(rules.status == 0);
  const auto of_rules = nlohmann::json::parse(rules.out);
  REQUIRE(of_rules.at("wraps").size() == 2);
  CHECK(of_rules.at("wrap") == "transformer.h.*");
  CHECK(of_rules.at("wraps")[0].at("not_chosen").is_null());
  // Rule 20M leaves the blocks in one layer of 340 MB, gathered beside that of the embeddings.
  CHECK_THAT(of_rules.at("wraps")[1].at("not_chosen").get<std::string>(),
             Contains("nothing fits into --gpu-memory"));
  CHECK_THAT(place.run("hipress-plan " + job + "--schedule fsdp --wrap 1M --wrap 7M").out,
             Contains("wrapped by\n1M ") && Contains("chosen") && Contains("longer"));

  const ToolRun best =
      place.run("hipress-plan " + job + "--json --gpu-memory 1.5GB --schedule BEST");
  REQUIRE(best.status == 0);
  const auto choice = nlohmann::json::parse(best.out);
  // GPT-2's 124 million parameters in fp32 take 16 bytes each with gradients and adamw's state.
  CHECK(choice.at("left_out")[0].at("schedule") == "ddp");
  CHECK_THAT(choice.at("left_out")[0].at("reason").get<std::string>(),
             Contains("does not fit: 1.99GB of a GPU's 1.5GB"));
  std::size_t chosen = 0;
  for (const auto& one : choice.at("schedules")) {
    chosen += one.at("not_chosen").is_null() ? 1 : 0;
    CHECK(one.at("peak_memory_bytes") <= 1'500'000'000);
  }
  CHECK(chosen == 1);
  CHECK_THAT(place.run("hipress-plan " + job + "--gpu-memory 80GB --schedule BEST").out,
             Contains("not chosen\n") && Contains("hsdp(shard=8, reshard=false)"));

  const auto refuses = [&](const std::string& command, const std::string& why) {
    const ToolRun run = place.run(command);
    CHECK(run.status == 2);
    CHECK_THAT(run.err, Contains(why));
  };
  refuses("hipress-sim " + job + "--plan none --schedule 'hsdp(shard=5)'",
          "shard=5 does not divide 32 nodes");
  refuses("hipress-plan " + job + "--schedule fsdp --gpu-memory 1kB",
          "nothing fits into --gpu-memory");
  place.write("uneven.yaml", "nodes: 8\nnodes_per_host: 3\nhost_link: {bandwidth: 300GB/s}\n");
  refuses(
      "hipress-sim --input gpt2 --compute-time 200ms --profile h100-400g --plan none "
      "--cluster uneven.yaml --schedule fsdp",
      "hosts have different numbers of nodes; give a number of nodes that nodes_per_host divides");
  refuses("hipress-sim " + job + "--plan none --schedule BEST",
          "BEST can only be chosen by hipress-plan");
  refuses("hipress-plan " + job + "--wrap 1M", "--wrap applies to layers, which ddp does not have");
  refuses("hipress-plan " + job + "--shards-by ring", "--shards-by applies to sharded schedules");
  refuses("hipress-plan " + job + "--shards-by ring --schedule 'local(steps=4)'",
          "--shards-by applies to sharded schedules");
  refuses("hipress-plan " + job + "--shards-by pigeon --schedule fsdp",
          "shards travel by library, ring, direct, not by 'pigeon'");
  refuses("hipress-plan " + job + "--wrap 1G --schedule fsdp", "no module has that many");
  refuses("hipress-plan " + job + "--wrap 1M --wrap 1G --schedule fsdp", "no module has that many");
  refuses("hipress-plan " + job + "--wrap 1M --wrap 2M --schedule fsdp --required-bandwidth",
          "--required-bandwidth takes one rule of --wrap");
  refuses("hipress-sim " + job + "--plan none --wrap 'h.*' --schedule fsdp",
          "--wrap: no module is called 'h.*'");
  refuses("hipress-plan " + job + "--schedule BEST", "give --gpu-memory, such as 80GB");
  refuses("hipress-plan " + job + "--schedule BEST --gpu-memory 1kB",
          "nothing fits into --gpu-memory");
  refuses("hipress-plan " + job + "--schedule fsdp --gpu-memory much", "--gpu-memory");
  refuses("hipress-plan " + job + "--schedule fsdp --optimizer lion", "known are adamw");
  refuses("hipress-plan " + job + "--activation-memory 2GB", "--activation-memory needs");
  refuses("hipress-plan " + job + "--today ddp_fp8", "--today: 'ddp_fp8' is no baseline");
  const ToolRun needed = place.run("hipress-plan " + job +
                                   "--schedule ddp --schedule fsdp --required-bandwidth "
                                   "--utilization 50% --gpu-memory 1.5GB");
  CHECK(needed.status == 0);
  CHECK_THAT(needed.out, Contains("does not fit: 1.99GB of a GPU's 1.5GB"));
  const ToolRun ported = place.run("hipress-sim " + job +
                                   "--plan none --schedule fsdp --topology ring --network port");
  CHECK_THAT(ported.err,
             Contains("--topology has no effect: a library's collectives carry the shards") &&
                 Contains("each of the 32 GPUs is a node"));
  CHECK(place.run("hipress-plan " + job + "--schedule 'hsdp(shard=4|5|8)'").status == 0);
  const ToolRun links = place.run("hipress-plan " + job +
                                  "--schedule fsdp --algorithm onebit --required-bandwidth --json");
  CHECK(links.status == 0);
  std::string wrong = text;
  wrong.replace(wrong.find("schedule: fsdp"), 14, "schedule: ddp");
  place.write("wrong.yaml", wrong);
  refuses("hipress-sim " + job + "--plan wrong.yaml", "applies to sharded schedules");
}

}  // namespace
}  // namespace hipress::planner
