#include <spdlog/spdlog.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <optional>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "executor/device_choice.hpp"
#include "executor/replay.hpp"
#include "executor/report.hpp"
#include "executor/room.hpp"
#include "executor/secret_options.hpp"
#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/memory.hpp"
#include "io/tool.hpp"
#include "models/model.hpp"
#include "planner/named_plans.hpp"
#include "plans/plan_file.hpp"
#include "plans/plan_options.hpp"
#include "sim/simulator.hpp"
#include "traces/timeline.hpp"
#include "transport/endpoint.hpp"

namespace {

using namespace hipress;

/// The command line.
struct Request {
  std::string input, plan = "none", topology = "PS", algorithm = "onebit", device = "cpu";
  std::uint32_t nnodes = 0;  ///< 0: the launcher's
  executor::ReplayOptions replay;
  std::string backward = "idle";
  std::string transport{transport::kDefaultTransport}, rendezvous, interface, job = "hipress";
  executor::SecretOptions secret;
  std::string profile, cluster, network = "fair";
  std::string trace;
  plans::PlanOptions plan_options;
  plans::Trust trust;
  bool topology_given = false;
  bool timeout_given = false;
  bool json = false;
  bool verbose = false;
};

void declare(CLI::App& app, Request& request) {
  app.add_option("--input", request.input,
                 "model: name,elements lines, a CSV, a YAML file, or a shipped model's name")
      ->required();
  app.add_option("--plan", request.plan,
                 "plan file, none, all, an algorithm's name, threshold[:ELEMENTS], or a baseline's "
                 "of hipress-plan: ddp, none_grouped …")
      ->required();
  app.add_option("--topology", request.topology,
                 "PS, RING or ALLREDUCE (default: what a plan YAML says, else PS)")
      ->each([&](const std::string&) { request.topology_given = true; });
  app.add_option("--nnodes", request.nnodes,
                 "ranks; default: the launcher's, else what a plan YAML says")
      ->check(io::count_from(1, 1024));
  app.add_option("--algorithm", request.algorithm,
                 "what compressed means where the plan does not say")
      ->capture_default_str();
  plans::declare(app, request.plan_options);
  plans::declare(app, request.trust);
  app.add_option("--device", request.device, "where gradients lie and codecs run: cpu, or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--iterations", request.replay.iterations, "measured iterations")
      ->check(io::count_from(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--warmup", request.replay.warmup,
                 "iterations before them, verified but not reported")
      ->check(io::count_from(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--backward", request.backward,
                 "what produces gradients: a timer (idle) or a busy core (spin)")
      ->check(CLI::IsMember({"idle", "spin"}))
      ->capture_default_str();
  app.add_option("--profile", request.profile,
                 "measured costs to predict with: a file, or a shipped profile's name");
  app.add_option("--cluster", request.cluster,
                 "cluster YAML to predict for; default: as the profile was measured");
  app.add_option("--network", request.network, "how predicted transfers share links: port or fair")
      ->capture_default_str();
  app.add_option("--transport", request.transport,
                 "what moves messages: " + transport::describe_transports() +
                     "; nccl (between GPUs; its ranks meet over " +
                     std::string(transport::kDefaultTransport) +
                     "). With --device cuda, all others go through pinned host memory")
      ->capture_default_str();
  app.add_option("--rendezvous", request.rendezvous,
                 "where the processes of a job meet: file:///shared/folder, redis://host:port or, "
                 "with TLS, rediss://host:port");
  app.add_option("--interface", request.interface,
                 "network interface or address to use; default: loopback");
  app.add_option("--job", request.job, "tells jobs apart that meet in one place")
      ->capture_default_str();
  request.secret.declare(app);
  app.add_option(
         "--timeout", request.replay.timeout_s,
         "seconds without progress after which the job ends; a rank that is silent for "
         "half of them is dead. If given, the C++ compiler, too, gets no more for a program "
         "(x.pse); else it gets 120")
      ->each([&](const std::string&) { request.timeout_given = true; })
      ->check(io::number_from(transport::kLeastTimeout_s, transport::kMostTimeout_s))
      ->capture_default_str();
  app.add_option("--seed", request.replay.seed, "of inputs and random draws")
      ->check(io::count_from(0))
      ->capture_default_str();
  app.add_option("--trace", request.trace, "write the timelines as a Chrome/Perfetto trace")
      ->check(io::file_name());
  app.add_flag("--json", request.json, "print one JSON object");
  app.add_flag("--verbose", request.verbose, "log every iteration");
}

/// What is replayed.
struct Job {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
};

std::string topology_of(const Request& request) {
  if (request.topology_given) return request.topology;
  return plans::topology_of_plan(request.plan).value_or(request.topology);
}

/// Baselines are made for the costs that are predicted with, else for published ones.
plans::ResolvedPlan resolve(const Request& request, const plans::PlanContext& context) {
  if (planner::is_searched(request.plan)) {
    throw io::InputError(
        fmt::format("--plan {}: write it to a file with hipress-plan --output plan.yaml, and give "
                    "--plan plan.yaml",
                    request.plan));
  }
  costs::Profile profile;
  costs::Cluster cluster;
  if (planner::is_named_plan(request.plan)) {
    profile = costs::read_profile(request.profile.empty() ? "sosp21" : request.profile);
    cluster = request.cluster.empty()
                  ? costs::cluster_from_profile(profile, context.nodes)
                  : costs::read_cluster(request.cluster, profile, context.nodes);
  }
  return planner::resolve_plan(
      request.plan, context,
      {.profile = profile, .cluster = cluster, .network = sim::parse_network(request.network)});
}

Job make_job(const Request& request, std::uint32_t nodes) {
  Job job{.model = models::read_model(request.input), .plan = {}, .graph = {}};
  plans::PlanContext context = {.model = job.model,
                                .strategy = topology_of(request),
                                .nodes = nodes,
                                .algorithm = request.algorithm,
                                .trust = request.trust};
  if (request.timeout_given) context.compile_timeout_s = request.replay.timeout_s;
  job.plan = resolve(request, context);
  if (job.plan.transfer_order.value_or(casync::TransferOrder::kReady) !=
      casync::TransferOrder::kReady) {
    throw io::InputError(request.plan +
                         ": transfer_order: this tool sends what is ready first; plan with "
                         "--transfer-order ready, or leave the key out");
  }
  plans::apply(request.plan_options, context, job.plan);
  job.graph = casync::expand(job.model, job.plan.plan);
  casync::check(job.graph);
  return job;
}

/// How many ranks the job has; the launcher and --nnodes must agree.
std::uint32_t count_ranks(const Request& request, const std::optional<io::Launch>& launch) {
  if (!launch) {
    if (request.nnodes > 0) return request.nnodes;
    if (const auto planned = plans::nodes_of_plan(request.plan)) return *planned;
    throw io::InputError(
        "--nnodes is required unless a launcher (torchrun, srun, mpirun) starts the ranks or a "
        "plan "
        "YAML says how many there are");
  }
  const auto size = static_cast<std::uint32_t>(launch->size);
  if (request.nnodes != 0 && request.nnodes != size) {
    throw io::InputError(fmt::format("--nnodes is {}, but {} started {} ranks", request.nnodes,
                                     launch->launcher, size));
  }
  if (request.rendezvous.empty() && size > 1) {
    throw io::InputError(
        fmt::format("rank {} of {} started by {} needs --rendezvous: file:///shared/folder, "
                    "redis://host:port or rediss://host:port",
                    launch->rank, size, launch->launcher));
  }
  return size;
}

/// Says what has no effect where ranks are threads, which meet in the process.
void warn_of_unused(const Request& request) {
  const auto warn = [](const char* option, bool given) {
    if (given) {
      spdlog::warn("{} has no effect: no launcher started this process, so its ranks are threads",
                   option);
    }
  };
  const Request untouched;
  warn("--rendezvous", request.rendezvous != untouched.rendezvous);
  warn("--job", request.job != untouched.job);
  warn("--secret-file", request.secret.file.has_value());
  // NCCL is bound to it in any case.
  warn("--interface", request.interface != untouched.interface && request.transport != "nccl");
}

std::optional<sim::Result> predict(const Request& request, const Job& job) {
  const sim::Network network = sim::parse_network(request.network);
  if (request.profile.empty()) {
    if (request.cluster.empty()) return std::nullopt;
    throw io::InputError(
        "--cluster says what to predict for, and there is no prediction without costs: add "
        "--profile, or leave --cluster out");
  }
  const costs::Profile profile = costs::read_profile(request.profile);
  const costs::Cluster cluster =
      request.cluster.empty() ? costs::cluster_from_profile(profile, job.graph.nodes)
                              : costs::read_cluster(request.cluster, profile, job.graph.nodes);
  if (cluster.gpus_per_node > 1 || costs::is_hierarchical(cluster)) {
    throw io::InputError(request.cluster +
                         ": host_link, rack and gpus_per_node are of clusters that hipress-sim "
                         "predicts and this tool cannot run on; leave them out");
  }
  const bool spins = request.replay.backward == executor::Backward::kSpin;
  return sim::simulate(
      job.graph, sim::TaskCosts(profile, job.plan.plan.algorithms), cluster,
      {.network = network,
       .backward_cores = spins ? sim::BackwardCores::kOne : sim::BackwardCores::kNone,
       .record_timeline = true});
}

executor::ReplayResult replay(const Request& request, const std::optional<io::Launch>& launch,
                              const std::string& transport, const Job& job) {
  if (!launch || launch->size == 1) {
    return executor::replay_threads(transport, job.model, job.plan, job.graph, request.replay);
  }
  const std::string plan =
      fmt::format("{} {}+{} iterations, seed {}, {} {}, backward {}",
                  plans::plan_fingerprint(job.model, job.plan.plan), request.replay.warmup,
                  request.replay.iterations, request.replay.seed, request.device, request.transport,
                  request.backward);
  const auto node = static_cast<std::uint32_t>(launch->rank);
  executor::require_room(executor::room_of(job.graph, job.model, job.plan, {&node, 1}, true), 1,
                         io::available_memory());
  transport::JobOptions options{.rank = launch->rank,
                                .size = launch->size,
                                .job = request.job,
                                .plan = plan,
                                .rendezvous = request.rendezvous,
                                .interface = request.interface,
                                .timeout_s = request.replay.timeout_s};
  request.secret.apply(options);
  const auto endpoint =
      executor::connect_rank(transport, options, executor::collectives_of(job.graph));
  return executor::replay(*endpoint, job.model, job.plan, job.graph, request.replay);
}

void write_trace(const Request& request, const Job& job, const executor::ReplayResult& replayed,
                 const std::optional<sim::Result>& predicted) {
  const std::vector<std::string> names =
      casync::unit_names(casync::make_layout(job.model, job.plan.plan));
  std::vector<const traces::Timeline*> timelines;
  if (predicted) timelines.push_back(&predicted->timeline);
  timelines.push_back(&replayed.timeline);
  io::write_file(request.trace, [&](std::ostream& out) {
    traces::write_chrome_trace(
        out, job.graph, names, timelines,
        {.model = job.model.name, .plan = plans::title(request.plan, job.plan.plan)});
  });
}

int run(Request& request) {
  const std::optional<io::Launch> launch = io::read_launch();
  const bool reports = !launch || launch->rank == 0;
  if (reports && !request.trace.empty()) io::require_writable(request.trace);
  request.secret.read();
  const std::uint32_t ranks = count_ranks(request, launch);
  const executor::DeviceChoice choice = executor::choose_device({.device = request.device,
                                                                 .transport = request.transport,
                                                                 .interface = request.interface,
                                                                 .ranks = static_cast<int>(ranks)},
                                                                launch);
  request.replay.device = choice.device;
  request.replay.nccl = choice.nccl;
  if (!launch) warn_of_unused(request);
  const Job job = make_job(request, ranks);
  request.replay.backward =
      request.backward == "spin" ? executor::Backward::kSpin : executor::Backward::kIdle;
  const std::optional<sim::Result> predicted = predict(request, job);
  request.replay.timeline = predicted || !request.trace.empty();
  if (request.verbose) {
    request.replay.progress = [](int iteration) { spdlog::info("iteration {}", iteration); };
  }
  const executor::ReplayResult replayed = replay(request, launch, choice.transport, job);
  if (!reports) return 0;
  const executor::Report report =
      executor::make_report(job.model, job.graph, replayed, predicted ? &*predicted : nullptr);
  if (request.json) {
    std::cout << executor::to_json(report).dump() << "\n";
  } else {
    executor::print(std::cout, report);
  }
  // Last, since what was measured is worth more than a trace that cannot be written after all.
  if (!request.trace.empty()) write_trace(request, job, replayed, predicted);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  return io::run_tool(
      argc, argv,
      {.name = "hipress-exec",
       .purpose = "Really synchronises a model's gradients between ranks as a plan says, verifies "
                  "every value, and lays "
                  "the measured times beside the predicted ones.",
       .example = "hipress-exec --input vgg19 --plan all --topology RING --nnodes 4"},
      [&](CLI::App& app) { declare(app, request); }, [&] { return run(request); });
}
