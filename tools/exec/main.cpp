#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "costs/description.hpp"
#include "costs/machine_options.hpp"
#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/memory.hpp"
#include "models/model.hpp"
#include "models/time_options.hpp"
#include "planner/baselines/named_plans.hpp"
#include "plans/broadcast.hpp"
#include "plans/plan_file.hpp"
#include "plans/plan_options.hpp"
#include "replay/clock.hpp"
#include "replay/device_choice.hpp"
#include "replay/drift.hpp"
#include "replay/gradient_files.hpp"
#include "replay/probes.hpp"
#include "replay/replay.hpp"
#include "replay/room.hpp"
#include "runtime/gather.hpp"
#include "sim/message_sizes.hpp"
#include "sim/simulator.hpp"
#include "tools/exec/prediction.hpp"
#include "tools/exec/report.hpp"
#include "tools/frame.hpp"
#include "tools/options/secret.hpp"
#include "tools/options/shared.hpp"
#include "traces/timeline.hpp"
#include "transport/endpoint.hpp"

namespace {

using namespace hipress;

/// The command line.
struct Request {
  std::string input, plan = "none", topology = "PS", algorithm = "onebit", device = "cpu";
  std::uint32_t nnodes = 0;  ///< 0: the launcher's
  replay::ReplayOptions replay;
  std::string backward = "idle";
  std::string transport{transport::kDefaultTransport}, rendezvous, interface, job = "hipress";
  tools::SecretOptions secret;
  costs::MachineOptions machines;  ///< to predict for
  models::TimeOptions times;
  std::string network = "fair";
  std::string gradients;  ///< folder; empty: they are made up
  std::string trace;
  plans::PlanOptions plan_options;
  plans::Trust trust;
  int again = 3;
  bool reprobe = false;
  bool topology_given = false;
  bool timeout_given = false;
  bool json = false;
  bool verbose = false;
};

void declare(CLI::App& app, Request& request) {
  app.add_option("--input", request.input,
                 "model: name,elements lines, a CSV, a YAML file, or a shipped model's name; not "
                 "needed with the plan YAML of a broadcast");
  app.add_option("--plan", request.plan,
                 "plan file, none, all, an algorithm's name, threshold[:ELEMENTS], or a baseline's "
                 "of hipress-plan: ddp, none_grouped …")
      ->required();
  app.add_option("--topology", request.topology,
                 fmt::format("one of {}, or of a broadcast {} (default: what a plan YAML says, "
                             "else ps)",
                             casync::strategy_names(casync::Operation::kMean),
                             casync::strategy_names(casync::Operation::kBroadcast)))
      ->each([&](const std::string&) { request.topology_given = true; });
  app.add_option("--nnodes", request.nnodes,
                 "ranks; default: the launcher's, else what a plan YAML says, else the cluster's")
      ->check(tools::count_from(1, 1024));
  app.add_option("--algorithm", request.algorithm,
                 "Codec of plan entries that are compressed but name none")
      ->capture_default_str();
  tools::declare(app, request.plan_options);
  tools::declare(app, request.trust);
  app.add_option("--device", request.device, "where gradients lie and codecs run: cpu, or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--iterations", request.replay.iterations, "measured iterations")
      ->check(tools::count_from(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--warmup", request.replay.warmup,
                 "iterations before them, verified but not reported")
      ->check(tools::count_from(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--backward", request.backward,
                 "what produces gradients: a timer (idle) or a busy core (spin)")
      ->check(CLI::IsMember({"idle", "spin"}))
      ->capture_default_str();
  tools::declare(app, request.machines, "default: none, and nothing is predicted");
  app.add_flag("--reprobe", request.reprobe,
               "also predict by what the machine's probes reach now, where it is not as fast as "
               "when it was profiled");
  app.add_option("--again", request.again,
                 "replay again, so many times at most, where probes before and after say that the "
                 "machine's speed changed meanwhile")
      ->check(tools::count_from(0, 1000))
      ->capture_default_str();
  tools::declare(app, request.times);
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
      ->check(tools::number_from(transport::kMinTimeout_s, transport::kMaxTimeout_s))
      ->capture_default_str();
  app.add_option("--seed", request.replay.seed, "of made-up gradients and random draws")
      ->check(tools::count_from(0))
      ->capture_default_str();
  app.add_option("--gradients", request.gradients,
                 "folder with the gradients of all ranks, the same in every iteration, instead of "
                 "made-up ones: rank{r}/{index}.f32 has those of rank r, index from 0 in the order "
                 "of --input, as raw little-endian fp32 whatever the model's dtype. Each rank "
                 "verifies a part of all ranks' results, so all must be able to read the whole "
                 "folder; give processes a shared one")
      ->check(tools::file_name());
  app.add_option("--means", request.replay.means,
                 "folder to write what each rank ends with after the last iteration, in files as "
                 "--gradients has them; is made if it is missing, and refused if it holds a file")
      ->check(tools::file_name());
  app.add_option(
         "--load-state", request.replay.load_state,
         "folder with what the encoders of all ranks keep between iterations, to begin with: "
         "rank{r}.state, as --save-state writes it. For plans that compress in stages alone "
         "(powersgd, acpsgd, rsketch), since only these verify from a state on")
      ->check(tools::file_name());
  app.add_option("--save-state", request.replay.save_state,
                 "folder to write what the encoders keep after the last iteration: residuals and "
                 "factors. Is made if it is missing; files in it are replaced")
      ->check(tools::file_name());
  app.add_option("--trace", request.trace, "write the timelines as a Chrome/Perfetto trace")
      ->check(tools::file_name());
  app.add_flag("--json", request.json, "print one JSON object");
  app.add_flag("--verbose", request.verbose, "log every iteration");
}

/// What is replayed.
struct Job {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
  std::vector<std::string> diagnostics = {};  ///< what was assumed of the model
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
    costs::LoadedMachines machines = costs::load(request.machines, context.nodes, context.nodes);
    profile = std::move(machines.profile);
    cluster = std::move(machines.cluster);
  }
  return planner::resolve_plan(
      request.plan, context,
      {.profile = profile, .cluster = cluster, .network = sim::parse_network(request.network)});
}

Job make_job(const Request& request, std::uint32_t nodes) {
  Job job;
  job.model = plans::read_input(request.input, request.plan, topology_of(request), request.times,
                                job.diagnostics);
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
  job.graph = casync::expand_to_run(job.model, job.plan.plan);
  casync::check(job.graph);
  return job;
}

/// How many ranks the job has; the launcher and --nnodes must agree.
std::uint32_t count_ranks(const Request& request, const std::optional<io::Launch>& launch) {
  if (!launch) {
    if (request.nnodes > 0) return request.nnodes;
    if (const auto planned = plans::nodes_of_plan(request.plan)) return *planned;
    if (!request.machines.cluster.empty()) {
      if (const auto nodes = costs::nodes_of_cluster(request.machines.cluster)) return *nodes;
    }
    throw io::InputError(
        "--nnodes is required unless a launcher (torchrun, srun, mpirun) starts the ranks, or a "
        "plan YAML or a cluster file says how many there are");
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

/// What replays are predicted with; none without a profile.
struct Forecast {
  costs::LoadedMachines machines;
  replay::PredictionOptions options;
};

bool has_probes(const costs::Profile& profile) { return profile.probes != costs::Probes{}; }

/// io::InputError for what makes no prediction, before any rank is run.
std::optional<Forecast> prepare_forecast(const Request& request, const Job& job) {
  const sim::Network network = sim::parse_network(request.network);
  const costs::MachineOptions& named = request.machines;
  const auto needs_profile = [&](const char* option, const char* says, bool given) {
    if (!given || !named.profile.empty()) return;
    throw io::InputError(fmt::format(
        "{} says {}, and there is no prediction without costs: add --profile, or leave {} out",
        option, says, option));
  };
  needs_profile("--cluster", "what to predict for", !named.cluster.empty());
  needs_profile("--bandwidth, or another option about machines,", "what to predict for",
                named.names_cluster() || !named.scale_kernels.empty());
  needs_profile("--reprobe", "to predict by the machine's speed now", request.reprobe);
  if (named.profile.empty()) return std::nullopt;
  const bool spins = request.replay.backward == replay::Backward::kSpin;
  Forecast forecast{
      .machines = costs::load(named, job.graph.nodes, job.graph.nodes),
      .options = {.machines = named,
                  .network = network,
                  .backward_cores = spins ? sim::BackwardCores::kOne : sim::BackwardCores::kNone,
                  .iterations = request.replay.iterations}};
  if (request.reprobe && !has_probes(forecast.machines.profile)) {
    throw io::InputError(named.profile +
                         ": --reprobe compares the machine with what its probes reached, and this "
                         "profile has none: measure it with hipress-profile, or leave --reprobe "
                         "out");
  }
  replay::check_prediction(forecast.machines.profile, job.plan.plan.algorithms, job.graph.nodes,
                           forecast.options);
  return forecast;
}

/// Says on one rank what was assumed of the inputs.
void say(const Job& job, const std::optional<Forecast>& forecast) {
  for (const std::string& diagnostic : job.diagnostics) spdlog::info("{}", diagnostic);
  if (!forecast) return;
  for (const std::string& diagnostic : forecast->machines.diagnostics)
    spdlog::info("{}", diagnostic);
  for (const std::string& warning : forecast->machines.warnings) spdlog::warn("{}", warning);
}

/// This process's end of the job that a launcher started; null where ranks are threads.
std::unique_ptr<transport::Endpoint> connect(const Request& request,
                                             const std::optional<io::Launch>& launch,
                                             const std::string& transport, const Job& job) {
  if (!launch || launch->size == 1) return nullptr;
  const std::string plan =
      fmt::format("{} {}+{} iterations, seed {}, {} {}, backward {}",
                  plans::plan_fingerprint(job.model, job.plan.plan), request.replay.warmup,
                  request.replay.iterations, request.replay.seed, request.device, request.transport,
                  request.backward + (request.gradients.empty() ? "" : ", given gradients"));
  const auto node = static_cast<std::uint32_t>(launch->rank);
  replay::require_room(replay::room_of(job.graph, job.model, job.plan, {&node, 1}, true), 1,
                       io::available_memory());
  transport::JobOptions options{.rank = launch->rank,
                                .size = launch->size,
                                .job = request.job,
                                .plan = plan,
                                .rendezvous = request.rendezvous,
                                .interface = request.interface,
                                .timeout_s = request.replay.timeout_s};
  request.secret.apply(options);
  return replay::connect_rank(transport, options, replay::collectives_of(job.graph));
}

/// What came of all replays.
struct Outcome {
  replay::ReplayResult replayed;           ///< the last
  std::optional<replay::Watched> watched;  ///< none: the profile has no probes
  std::vector<std::string> machines;       ///< by rank
  bool threads = true;                     ///< or processes
};

/// Whether the machine is watched, and what it may move; as rank 0 says, for whoever else may have
/// no profile.
struct Watching {
  bool wanted = false;
  int again = 0;
  costs::Spread spread;
};

Watching watching_of(const Request& request, const std::optional<Forecast>& forecast,
                     transport::Endpoint* endpoint) {
  Watching watching;
  if (forecast && has_probes(forecast->machines.profile)) {
    watching = {.wanted = true,
                .again = request.again,
                .spread = costs::spread_of(forecast->machines.profile)};
  }
  return endpoint == nullptr ? watching : runtime::gather(*endpoint, watching).front();
}

Outcome run_replays(const Request& request, const std::optional<io::Launch>& launch,
                    const std::string& transport, const Job& job,
                    const std::optional<Forecast>& forecast) {
  const auto endpoint = connect(request, launch, transport, job);
  Outcome outcome;
  outcome.threads = endpoint == nullptr;
  outcome.machines = endpoint ? endpoint->all_gather(replay::machine_clock().boot)
                              : std::vector<std::string>(job.graph.nodes, "this one");
  const auto replay_once = [&] {
    outcome.replayed =
        endpoint
            ? replay::replay(*endpoint, job.model, job.plan, job.graph, request.replay)
            : replay::replay_threads(transport, job.model, job.plan, job.graph, request.replay);
  };
  const Watching watching = watching_of(request, forecast, endpoint.get());
  if (!watching.wanted) {
    replay_once();
    return outcome;
  }
  const replay::ProbeOptions probes = {
      .kernels = request.device == "cpu",
      .transport = request.transport == "nccl" ? std::string() : request.transport};
  outcome.watched = replay::watch(
      [&] { return endpoint ? replay::run_probes(probes, *endpoint) : replay::run_probes(probes); },
      [&] {
        replay_once();
        return watching.spread;
      },
      watching.again);
  return outcome;
}

/// Predicts what was replayed, and says what a reader must know before comparing the two. Returns
/// the prediction.
sim::Result report_prediction(const Request& request, const Job& job, const Forecast& forecast,
                              const Outcome& outcome, replay::Report& report) {
  using replay::Report;
  const costs::Profile& profile = forecast.machines.profile;
  const costs::Spread known = costs::spread_of(profile);
  const replay::Watched watched = outcome.watched.value_or(replay::Watched{});
  const replay::RankPlaces places{.machines = outcome.machines, .threads = outcome.threads};
  // The same tasks, but with factors as long as they are in the mean over steps, and with messages
  // whose length varies with the data as long as the profile's sample says.
  casync::Plan as_long = job.plan.plan;
  sim::predict_sizes(profile, as_long.algorithms);
  const bool varies = std::ranges::any_of(
      as_long.algorithms, [](const casync::Algorithm& one) { return one.share != 1; });
  std::optional<casync::TaskGraph> mean;
  if (varies || !job.graph.factors.empty()) mean = casync::expand(job.model, as_long);
  const casync::TaskGraph& simulated = mean ? *mean : job.graph;
  const auto predict = [&](const costs::Profile& costs) {
    return replay::predict(simulated, job.plan.plan.algorithms, costs,
                           replay::widened(known, watched.moved), places, forecast.options);
  };
  const auto told = [](const replay::Prediction& made) {
    return Report::Predicted{casync::to_seconds(made.result.iteration), made.interval};
  };
  const auto note = [&](const std::string& sentence) {
    if (!sentence.empty()) report.notes.push_back(sentence);
  };
  replay::Prediction predicted = predict(profile);
  report.predicted = told(predicted);
  report.kinds =
      traces::compare_by_kind(job.graph, predicted.result.timeline, outcome.replayed.timeline);
  note(predicted.differs);
  if (outcome.watched) {
    report.drift = replay::drift(watched.probes, profile.probes);
    report.drifted = watched.moved > 0 || replay::is_beyond(*report.drift, known);
    for (const std::string& sentence : replay::describe(*report.drift, known)) note(sentence);
    note(replay::describe_movement(watched));
    if (request.reprobe)
      report.reprobed = told(predict(replay::as_fast_as_now(profile, *report.drift)));
  }
  return std::move(predicted.result);
}

void write_trace(const Request& request, const Job& job, const replay::ReplayResult& replayed,
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

/// Makes the folders of means of the ranks that this process runs.
void prepare_means(const Request& request, const std::optional<io::Launch>& launch,
                   std::uint32_t ranks) {
  if (request.replay.means.empty()) return;
  const bool threads = !launch || launch->size == 1;
  const auto first = threads ? 0 : static_cast<std::uint32_t>(launch->rank);
  replay::prepare_means(request.replay.means, first, threads ? ranks : 1);
}

/// Looks at what is to be read and written of encoders' states.
void prepare_states(const Request& request, const Job& job, std::uint32_t ranks) {
  const replay::ReplayOptions& options = request.replay;
  if (options.load_state.empty() && options.save_state.empty()) return;
  if (options.device) {
    throw io::InputError(
        "--load-state and --save-state are for replays on CPUs; leave out --device");
  }
  if (!options.save_state.empty()) replay::prepare_states(options.save_state);
  if (options.load_state.empty()) return;
  for (std::size_t i = 0; i < job.plan.codecs.size(); ++i) {
    const kernels::CodecTraits& traits = job.plan.codecs[i]->traits();
    if (traits.staged || !traits.error_feedback) continue;
    throw io::InputError(fmt::format(
        "--load-state is for plans whose residuals are of stages alone, and this one compresses "
        "with {}; leave it out, or take another plan",
        io::quote(job.plan.plan.algorithms[i].name)));
  }
  replay::require_states(options.load_state, ranks);
}

int run(Request& request) {
  const std::optional<io::Launch> launch = io::read_launch();
  const bool reports = !launch || launch->rank == 0;
  if (reports && !request.trace.empty()) io::require_writable(request.trace);
  request.secret.read();
  const std::uint32_t ranks = count_ranks(request, launch);
  const replay::DeviceChoice choice = replay::choose_device({.device = request.device,
                                                             .transport = request.transport,
                                                             .interface = request.interface,
                                                             .ranks = static_cast<int>(ranks)},
                                                            launch);
  request.replay.device = choice.device;
  request.replay.nccl = choice.nccl;
  if (!launch) warn_of_unused(request);
  const Job job = make_job(request, ranks);
  request.replay.backward =
      request.backward == "spin" ? replay::Backward::kSpin : replay::Backward::kIdle;
  const std::optional<Forecast> forecast = prepare_forecast(request, job);
  std::optional<replay::GradientFiles> gradients;
  if (!request.gradients.empty()) gradients.emplace(request.gradients, job.model, ranks);
  request.replay.gradients = gradients ? &*gradients : nullptr;
  prepare_means(request, launch, ranks);
  prepare_states(request, job, ranks);
  if (reports && !request.trace.empty()) io::refuse_input(request.trace);
  if (reports) say(job, forecast);
  request.replay.timeline = forecast || !request.trace.empty();
  if (request.verbose) {
    request.replay.progress = [](int iteration) { spdlog::info("iteration {}", iteration); };
  }
  const Outcome outcome = run_replays(request, launch, choice.transport, job, forecast);
  if (!reports) return 0;
  replay::Report report = replay::make_report(job.model, job.graph, outcome.replayed);
  std::optional<sim::Result> predicted;
  if (forecast) predicted = report_prediction(request, job, *forecast, outcome, report);
  const std::string predicted_for =
      forecast ? costs::describe_machines(forecast->machines.profile, forecast->machines.cluster,
                                          job.model)
               : "";
  if (request.json) {
    auto json = replay::to_json(report);
    if (forecast) json["predicted_for"] = predicted_for;
    std::cout << json.dump() << "\n";
  } else {
    replay::print(std::cout, report);
    if (forecast) std::cout << "predicted for " << predicted_for << "\n";
  }
  // Last, since what was measured is worth more than a trace that cannot be written after all.
  if (!request.trace.empty()) write_trace(request, job, outcome.replayed, predicted);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  return tools::run_tool(
      argc, argv,
      {.name = "hipress-exec",
       .purpose = "Really synchronises a model's gradients between ranks as a plan says, verifies "
                  "every value, and lays "
                  "the measured times beside the predicted ones.",
       .example = "hipress-exec --input vgg19 --plan all --topology RING --nnodes 4"},
      [&](CLI::App& app) { declare(app, request); }, [&] { return run(request); });
}
