#include "requests/replay_automatic.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "job/connect.hpp"
#include "replay/device_choice.hpp"
#include "replay/gradient_files.hpp"
#include "replay/replay.hpp"
#include "requests/ranks.hpp"
#include "requests/replay_ranks.hpp"

namespace hipress::requests {
namespace {

/// Ranks of the job: this process's endpoint, or threads if it is null.
struct Ranks {
  std::unique_ptr<transport::Endpoint> endpoint;
  std::string transport;
  std::uint32_t count = 0;
};

/// Request with the defaults of a job that chooses its plan.
ReplayRequest with_defaults(ReplayRequest request, bool reports, const Hooks& hooks) {
  if (request.input.empty()) {
    request.input = kUsualInput;
    if (reports) {
      inform(hooks, fmt::format("the answer is for the gradients of {}, as no `input` was given",
                                kUsualInput));
    }
  }
  if (!request.given.contains("algorithm")) request.algorithm = planner::kSafe;
  if (!request.given.contains("topology")) request.topology = "BEST";
  return request;
}

/// Job with an uncompressed plan, by which the ranks compare their models before one is chosen.
ReplayJob job_without_plan(ReplayRequest request, std::uint32_t ranks) {
  request.plan = "none";
  request.topology = "ring";
  return make_job(request, ranks);
}

/// Job of one of the two plans.
ReplayJob job_of(const AutomaticPlan& plan, const AutomaticRequest& request, std::uint32_t ranks) {
  ReplayJob job;
  job.model = *request.model;
  job.plan = resolve(plan, request, ranks);
  job.graph = casync::expand_to_run(job.model, job.plan.plan);
  casync::check(job.graph);
  return job;
}

AutomaticChoice choose_plan(const Ranks& ranks, const AutomaticRequest& request,
                            const Hooks& hooks) {
  if (ranks.endpoint) return choose(*ranks.endpoint, request, hooks);
  AutomaticChoice choice;
  const auto of_rank = [&](transport::Endpoint& endpoint) {
    AutomaticChoice found = choose(endpoint, request, endpoint.rank() == 0 ? hooks : Hooks{});
    if (endpoint.rank() == 0) choice = std::move(found);
  };
  job::run_thread_ranks(ranks.transport, static_cast<int>(ranks.count), request.timeout_s, of_rank);
  return choice;
}

/// Iterations of one of the two plans, over all its blocks.
struct Blocks {
  ReplayJob job;
  replay::ReplayResult all = {};

  /// Replays one block: `options.iterations` measured iterations of this plan. Appends their times
  /// to those in `all`, and returns their median in seconds.
  double run(const Ranks& ranks, const replay::ReplayOptions& options) {
    replay::ReplayResult block =
        ranks.endpoint
            ? replay::replay(*ranks.endpoint, job.model, job.plan, job.graph, options)
            : replay::replay_threads(ranks.transport, job.model, job.plan, job.graph, options);
    const double median_s = report_of(block).measured_iteration_s.median;
    block.iteration_s.insert(block.iteration_s.begin(), all.iteration_s.begin(),
                             all.iteration_s.end());
    block.process_cpu_s.insert(block.process_cpu_s.begin(), all.process_cpu_s.begin(),
                               all.process_cpu_s.end());
    all = std::move(block);
    return median_s;
  }

  replay::Report report_of(const replay::ReplayResult& replayed) const {
    return replay::make_report(job.model, job.plan.plan.schedule, job.graph, replayed);
  }
  double median_s() const { return report_of(all).measured_iteration_s.median; }
};

/// Replays pairs of blocks, one of each plan, until replay::judge() decides. Every other pair
/// begins with `planned`. Returns the speedup of `planned` in each pair.
std::vector<double> compare(const Ranks& ranks, const replay::ReplayOptions& options, Blocks& plain,
                            Blocks& planned) {
  std::vector<double> speedups;
  while (replay::judge(speedups).verdict == replay::Verdict::kOpen) {
    const bool planned_first = speedups.size() % 2 == 1;
    const double first_s = (planned_first ? planned : plain).run(ranks, options);
    const double second_s = (planned_first ? plain : planned).run(ranks, options);
    speedups.push_back(planned_first ? second_s / first_s : first_s / second_s);
  }
  return speedups;
}

replay::Report::Predicted prediction_of(const AutomaticPlan& plan) {
  return {.iteration_s = plan.iteration_s, .interval = plan.interval};
}

}  // namespace

std::vector<std::string> AutomaticReplay::lines() const {
  std::vector<std::string> all;
  all.push_back(fmt::format("links: {}, between {} ranks", describe(choice.links), ranks));
  all.push_back("predicted: " + choice.prediction());
  if (!planned_s) {
    all.push_back(
        fmt::format("measured: {} takes {}", choice.plain.what, io::format_duration(plain_s)));
    all.push_back(fmt::format("chosen: {}, as there is no plan to compare with", taken().what));
    return all;
  }
  const std::string interval =
      speedups.low ? fmt::format(" ({:.2f} to {:.2f})", *speedups.low, *speedups.high) : "";
  all.push_back(
      fmt::format("measured: {:.2f} times{} as fast in {} pair{} of blocks: {} instead of {}",
                  speedups.mean, interval, pairs, pairs == 1 ? "" : "s",
                  io::format_duration(*planned_s), io::format_duration(plain_s)));
  const bool faster = speedups.verdict == replay::Verdict::kFaster;
  const char* const why = takes_plan() ? "faster by more than the noise"
                          : !faster    ? "the plan is not faster by more than the noise"
                                       : "the predicted interval contains 1";
  all.push_back(fmt::format("chosen: {} ({})", taken().what, why));
  return all;
}

void fill(Record& record, const AutomaticReplay& automatic) {
  const AutomaticChoice& choice = automatic.choice;
  const std::optional<AutomaticPlan>& planned = choice.planned;
  const auto if_planned = [&](double value) {
    return planned ? std::optional(value) : std::nullopt;
  };
  record.object("links", choice.links, "Links that the ranks' own messages found",
                [](Record& made, const runtime::Links& links) {
                  made.add("bandwidth_Bps", links.bandwidth,
                           "Bytes per second of a rank that sends and receives at once");
                  made.add("latency_s", links.latency_s, "Time of a small message");
                });
  record.add("plan", planned ? std::optional(planned->what) : std::nullopt,
             "The fastest plan with compression, in words; null, like all about it, if no "
             "algorithm has costs");
  record.add("uncompressed", choice.plain.what, "The fastest plan without, in words");
  record.add("predicted_speedup", if_planned(choice.gain),
             "Predicted speedup of the plan over the uncompressed one");
  record.add("predicted_speedup_p10", if_planned(choice.gain_p10), "Start of its 10–90 % interval");
  record.add("predicted_speedup_p90", if_planned(choice.gain_p90), "End of that interval");
  record.add("predicted_plan_s", if_planned(planned ? planned->iteration_s : 0),
             "Predicted iteration time of the plan");
  record.add("predicted_uncompressed_s", choice.plain.iteration_s,
             "Predicted iteration time of the uncompressed plan");
  const replay::Speedups& speedups = automatic.speedups;
  record.add("measured_speedup", if_planned(speedups.mean),
             "Measured speedup, the geometric mean over the pairs of blocks");
  record.add("measured_speedup_low", speedups.low,
             "Start of its 95 % interval; null with fewer than two pairs");
  record.add("measured_speedup_high", speedups.high, "End of that interval");
  record.add("measured_plan_s", automatic.planned_s,
             "Measured iteration time of the plan, a median");
  record.add("measured_uncompressed_s", automatic.plain_s,
             "Measured iteration time of the uncompressed plan, a median");
  record.add("pairs", automatic.pairs, "Number of pairs of blocks");
  record.add("chosen", automatic.taken().what,
             "The plan that would be chosen, which the other keys of the result are about");
  record.add("takes_plan", automatic.takes_plan(),
             "True if that is the plan with compression: predicted and measured to be faster by "
             "more than the noise");
  record.add("chosen_plan", automatic.taken().yaml, "The chosen plan, the text of a plan YAML");
  record.add("planning_s", choice.planning_s, "Time that planning took");
  std::vector<std::string> lines;
  for (const std::string& line : automatic.lines()) lines.push_back(sentence(line));
  record.add("lines", lines, "Links, prediction, measurement and choice, a line each");
}

Replayed replay_automatically(ReplayRequest given, const Hooks& hooks) {
  const std::optional<io::Launch> launch = io::read_launch();
  Replayed made{.reports = reports(launch), .job = {}, .report = {}, .measured = {}};
  ReplayRequest request = with_defaults(std::move(given), made.reports, hooks);
  const transport::JobOptions options = job_options(request.ranks, launch, hooks);
  if (made.reports) warn_of_idle(fields(request), hooks);
  Ranks ranks{.endpoint = nullptr, .transport = {}, .count = count_ranks(request, launch)};
  ranks.transport = replay::choose_device({.device = request.device,
                                           .transport = request.transport,
                                           .interface = request.ranks.interface,
                                           .ranks = static_cast<int>(ranks.count)},
                                          launch)
                        .transport;
  if (ranks.count < 2) {
    throw io::InputError(
        "`auto` measures links, and one rank alone has none: start at least two, `nnodes` 2");
  }
  ReplayJob job = job_without_plan(request, ranks.count);
  if (made.reports) {
    for (const std::string& diagnostic : job.diagnostics) inform(hooks, diagnostic);
  }
  std::optional<replay::GradientFiles> gradients;
  if (!request.gradients.empty()) gradients.emplace(request.gradients, job.model, ranks.count);
  request.replay.gradients = gradients ? &*gradients : nullptr;
  request.replay.backward =
      request.backward == "spin" ? replay::Backward::kSpin : replay::Backward::kIdle;
  request.replay.progress =
      progress_of(request.replay.warmup + request.replay.iterations, !meets(launch), hooks);
  const AutomaticRequest asked{.model = std::make_shared<const models::Model>(job.model),
                               .profile = request.machines.profile,
                               .algorithms = request.algorithm,
                               .topology = request.topology,
                               .network = request.network,
                               .timeout_s = request.replay.timeout_s};
  if (!asked.profile.empty()) costs::read_profile(asked.profile);
  ranks.endpoint = connect(request, job, ranks.transport, options);
  AutomaticReplay found{.choice = choose_plan(ranks, asked, hooks), .ranks = ranks.count};
  Blocks plain{.job = job_of(found.choice.plain, asked, ranks.count)};
  std::optional<Blocks> planned;
  if (found.choice.planned) {
    planned.emplace(Blocks{.job = job_of(*found.choice.planned, asked, ranks.count)});
    const std::vector<double> speedups = compare(ranks, request.replay, plain, *planned);
    found.speedups = replay::judge(speedups);
    found.pairs = speedups.size();
    found.planned_s = planned->median_s();
  } else {
    plain.run(ranks, request.replay);
  }
  found.plain_s = plain.median_s();
  Blocks& taken = found.takes_plan() ? *planned : plain;
  made.report = taken.report_of(taken.all);
  made.job = std::move(taken.job);
  if (made.reports) {
    made.report.predicted = prediction_of(found.taken());
    made.predicted_for = found.choice.machines;
  }
  made.automatic = std::move(found);
  return made;
}

}  // namespace hipress::requests
