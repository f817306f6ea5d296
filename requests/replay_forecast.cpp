#include "requests/replay_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "casync/topology.hpp"
#include "costs/assumed_spread.hpp"
#include "io/error.hpp"
#include "sim/message_sizes.hpp"
#include "traces/timeline.hpp"

namespace hipress::requests {
namespace {

/// Load of a rank whose computation keeps one core busy (`backward` spin).
casync::Computing spinning() { return {.threads = 1, .forward = 1, .backward = 1, .steps = 1}; }

/// Rejects fields that only a prediction uses, for requests without a prediction.
void require_no_forecast(const ReplayRequest& request) {
  const auto refuse = [](const char* field, const char* says, bool given) {
    if (!given) return;
    throw io::InputError(fmt::format(
        "{} asks {}, and there is no prediction without costs: add `profile`, or leave {} out",
        field, says, field));
  };
  const costs::MachineOptions& named = request.machines;
  refuse("`cluster`", "for a prediction for these machines", !named.cluster.empty());
  refuse("`bandwidth`, or another option about machines,", "for a prediction for these machines",
         named.names_cluster() || !named.scale_kernels.empty());
  refuse("`reprobe`", "for a prediction at the machine's present speed", request.reprobe);
}

}  // namespace

std::optional<ReplayForecast> prepare_forecast(const ReplayRequest& request, const ReplayJob& job) {
  const sim::Network network = sim::parse_network(request.network);
  const costs::MachineOptions& named = request.machines;
  if (named.profile.empty()) {
    require_no_forecast(request);
    return std::nullopt;
  }
  const bool spins = request.replay.backward == replay::Backward::kSpin;
  ReplayForecast forecast{.machines = costs::load(named, job.graph.nodes, job.graph.nodes),
                          .options = {.machines = named,
                                      .network = network,
                                      .computing = spins ? spinning() : casync::Computing{},
                                      .iterations = request.replay.iterations}};
  const costs::Profile& profile = forecast.machines.profile;
  if (request.reprobe && profile.probes == costs::Probes{}) {
    throw io::InputError(
        named.profile, 0,
        "`reprobe` compares the machine with the probes of its profile, and this profile has none: "
        "measure it with hipress-profile, or leave `reprobe` out");
  }
  replay::check_prediction(profile, job.plan.plan.algorithms, job.graph.nodes, forecast.options);
  return forecast;
}

sim::Result report_prediction(const ReplayRequest& request, const ReplayJob& job,
                              const ReplayForecast& forecast, const ReplayOutcome& outcome,
                              replay::Report& report) {
  const costs::Profile& profile = forecast.machines.profile;
  const costs::Spread known = costs::spread_of(profile);
  const replay::Watched watched = outcome.watched.value_or(replay::Watched{});
  const replay::RankPlaces places{.machines = outcome.machines, .threads = outcome.threads};
  // The prediction has the same tasks, with mean lengths: of factors, over steps; of messages that
  // depend on the data, over the profile's sample.
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
    return replay::Report::Predicted{casync::to_seconds(made.result.iteration), made.interval};
  };
  const auto note = [&](const std::string& text) {
    if (!text.empty()) report.notes.push_back(text);
  };
  replay::Prediction predicted = predict(profile);
  report.predicted = told(predicted);
  report.kinds =
      traces::compare_by_kind(job.graph, predicted.result.timeline, outcome.replayed.timeline);
  note(predicted.differs);
  if (outcome.watched) {
    report.drift = replay::drift(watched.probes, profile.probes);
    report.drifted = watched.moved > 0 || replay::is_beyond(*report.drift, known);
    note(replay::describe(*report.drift, known));
    note(replay::describe_movement(watched, "the replay"));
    if (request.reprobe) {
      report.reprobed = told(predict(replay::as_fast_as_now(profile, *report.drift)));
    }
  }
  return std::move(predicted.result);
}

}  // namespace hipress::requests
