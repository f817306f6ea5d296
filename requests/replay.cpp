#include "requests/replay.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "costs/assumed_spread.hpp"
#include "costs/description.hpp"
#include "io/file.hpp"
#include "job/clock.hpp"
#include "job/gather.hpp"
#include "replay/device_choice.hpp"
#include "replay/gradient_files.hpp"
#include "replay/probes.hpp"
#include "requests/replay_automatic.hpp"
#include "requests/replay_forecast.hpp"
#include "requests/replay_ranks.hpp"

namespace hipress::requests {
namespace {

/// Settings for watching the machine's speed. Rank 0's apply to all ranks, since the others may
/// have no profile.
struct Watching {
  bool wanted = false;
  int again = 0;
  costs::Spread spread;
};

Watching watching_of(const ReplayRequest& request, const std::optional<ReplayForecast>& forecast) {
  if (!forecast || forecast->machines.profile.probes == costs::Probes{}) return {};
  return {.wanted = true,
          .again = request.again,
          .spread = costs::spread_of(forecast->machines.profile)};
}

/// Replays in this process, and repeats the replay if the machine's speed changed.
ReplayOutcome replay_all(const ReplayRequest& request, const std::string& transport,
                         transport::Endpoint* endpoint, const ReplayJob& job,
                         const Watching& wanted) {
  ReplayOutcome outcome;
  outcome.threads = endpoint == nullptr;
  outcome.machines = endpoint ? endpoint->all_gather(job::machine_clock().boot)
                              : std::vector<std::string>(job.graph.nodes, "this one");
  const auto replay_once = [&] {
    outcome.replayed =
        endpoint
            ? replay::replay(*endpoint, job.model, job.plan, job.graph, request.replay)
            : replay::replay_threads(transport, job.model, job.plan, job.graph, request.replay);
  };
  const Watching watching = endpoint ? job::gather(*endpoint, wanted).front() : wanted;
  if (!watching.wanted) {
    replay_once();
    return outcome;
  }
  const replay::ProbeOptions probes = {
      .kernels = request.device == "cpu",
      .transport = request.transport == "nccl" ? std::string() : request.transport};
  outcome.watched =
      replay::watch([&] { return endpoint ? run_probes(probes, *endpoint) : run_probes(probes); },
                    [&] {
                      replay_once();
                      return watching.spread;
                    },
                    watching.again);
  return outcome;
}

void say(const ReplayJob& job, const std::optional<ReplayForecast>& forecast, const Hooks& hooks) {
  for (const std::string& diagnostic : job.diagnostics) inform(hooks, diagnostic);
  if (!forecast) return;
  for (const std::string& diagnostic : forecast->machines.diagnostics) inform(hooks, diagnostic);
  for (const std::string& warning : forecast->machines.warnings) warn(hooks, warning);
}

Replayed run(ReplayRequest request, const Hooks& hooks) {
  const std::optional<io::Launch> launch = io::read_launch();
  Replayed made{.reports = reports(launch), .job = {}, .report = {}, .measured = {}};
  const bool writes_trace = made.reports && !request.trace.empty();
  if (writes_trace) io::require_writable(request.trace);
  const transport::JobOptions options = job_options(request.ranks, launch, hooks);
  if (made.reports) warn_of_idle(fields(request), hooks);
  const std::uint32_t ranks = count_ranks(request, launch);
  const replay::DeviceChoice choice = replay::choose_device({.device = request.device,
                                                             .transport = request.transport,
                                                             .interface = request.ranks.interface,
                                                             .ranks = static_cast<int>(ranks)},
                                                            launch);
  request.replay.device = choice.device;
  request.replay.nccl = choice.nccl;
  ReplayJob& job = made.job = make_job(request, ranks);
  request.replay.backward =
      request.backward == "spin" ? replay::Backward::kSpin : replay::Backward::kIdle;
  const std::optional<ReplayForecast> forecast = prepare_forecast(request, job);
  std::optional<replay::GradientFiles> gradients;
  if (!request.gradients.empty()) gradients.emplace(request.gradients, job.model, ranks);
  request.replay.gradients = gradients ? &*gradients : nullptr;
  prepare_folders(request, job, launch, ranks);
  if (writes_trace) io::refuse_input(request.trace);
  if (made.reports) say(job, forecast, hooks);
  request.replay.timeline = forecast || !request.trace.empty();
  request.replay.progress =
      progress_of(request.replay.warmup + request.replay.iterations, !meets(launch), hooks);
  const std::unique_ptr<transport::Endpoint> endpoint =
      connect(request, job, choice.transport, options);
  ReplayOutcome outcome =
      replay_all(request, choice.transport, endpoint.get(), job, watching_of(request, forecast));
  made.report = replay::make_report(job.model, job.plan.plan.schedule, job.graph, outcome.replayed);
  if (made.reports && forecast) {
    made.predicted = report_prediction(request, job, *forecast, outcome, made.report).timeline;
    made.predicted_for =
        costs::describe_machines(forecast->machines.profile, forecast->machines.cluster, job.model);
  }
  made.measured = std::move(outcome.replayed.timeline);
  return made;
}

}  // namespace

Replayed replay(const ReplayRequest& request, const Hooks& hooks) {
  refuse_unfit(request);
  return interruptible(hooks, [&] {
    return request.automatic ? replay_automatically(request, hooks) : run(request, hooks);
  });
}

void write_trace(const ReplayRequest& request, const Replayed& replayed) {
  if (request.trace.empty() || !replayed.reports) return;
  const ReplayJob& job = replayed.job;
  const std::vector<std::string> names =
      casync::unit_names(casync::make_layout(job.model, job.plan.plan));
  std::vector<const traces::Timeline*> timelines;
  if (replayed.predicted) timelines.push_back(&*replayed.predicted);
  timelines.push_back(&replayed.measured);
  io::write_file(request.trace, [&](std::ostream& out) {
    traces::write_chrome_trace(
        out, job.graph, names, timelines,
        {.model = job.model.name, .plan = plans::title(request.plan, job.plan.plan)});
  });
}

io::Document answer(const ReplayRequest& request, const Hooks& hooks) {
  const Replayed replayed = replay(request, hooks);
  write_trace(request, replayed);
  return document(replayed);
}

}  // namespace hipress::requests
