#include "tools/exec/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "casync/strategy.hpp"
#include "costs/assumed_spread.hpp"
#include "io/error.hpp"
#include "replay/drift.hpp"
#include "sim/message_sizes.hpp"
#include "tools/frame.hpp"
#include "traces/timeline.hpp"

namespace hipress::replay {
namespace {

bool has_probes(const costs::Profile& profile) { return profile.probes != costs::Probes{}; }

/// Of a rank whose backward keeps a core busy; it skips forward.
casync::Computing spinning() { return {.threads = 1, .forward = 1, .backward = 1, .steps = 1}; }

}  // namespace

std::optional<Forecast> prepare_forecast(const CommandLine& line, const Job& job) {
  const sim::Network network = sim::parse_network(line.network);
  const costs::MachineOptions& named = line.machines;
  const auto needs_profile = [&](const char* option, const char* says, bool given) {
    if (!given || !named.profile.empty()) return;
    throw io::InputError(fmt::format(
        "{} says {}, and there is no prediction without costs: add --profile, or leave {} out",
        option, says, option));
  };
  needs_profile("--cluster", "what to predict for", !named.cluster.empty());
  needs_profile("--bandwidth, or another option about machines,", "what to predict for",
                named.names_cluster() || !named.scale_kernels.empty());
  needs_profile("--reprobe", "to predict by the machine's speed now", line.reprobe);
  if (named.profile.empty()) return std::nullopt;
  const bool spins = line.replay.backward == Backward::kSpin;
  Forecast forecast{.machines = costs::load(named, job.graph.nodes, job.graph.nodes),
                    .options = {.machines = named,
                                .network = network,
                                .computing = spins ? spinning() : casync::Computing{},
                                .iterations = line.replay.iterations}};
  if (line.reprobe && !has_probes(forecast.machines.profile)) {
    throw io::InputError(named.profile +
                         ": --reprobe compares the machine with what its probes reached, and this "
                         "profile has none: measure it with hipress-profile, or leave --reprobe "
                         "out");
  }
  check_prediction(forecast.machines.profile, job.plan.plan.algorithms, job.graph.nodes,
                   forecast.options);
  return forecast;
}

void say(const Job& job, const std::optional<Forecast>& forecast) {
  for (const std::string& diagnostic : job.diagnostics) tools::inform(diagnostic);
  if (!forecast) return;
  for (const std::string& diagnostic : forecast->machines.diagnostics) tools::inform(diagnostic);
  for (const std::string& warning : forecast->machines.warnings) tools::warn(warning);
}

Watching watching_of(const CommandLine& line, const std::optional<Forecast>& forecast) {
  if (!forecast || !has_probes(forecast->machines.profile)) return {};
  return {
      .wanted = true, .again = line.again, .spread = costs::spread_of(forecast->machines.profile)};
}

sim::Result report_prediction(const CommandLine& line, const Job& job, const Forecast& forecast,
                              const Outcome& outcome, Report& report) {
  const costs::Profile& profile = forecast.machines.profile;
  const costs::Spread known = costs::spread_of(profile);
  const Watched watched = outcome.watched.value_or(Watched{});
  const RankPlaces places{.machines = outcome.machines, .threads = outcome.threads};
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
                           widened(known, watched.moved), places, forecast.options);
  };
  const auto told = [](const Prediction& made) {
    return Report::Predicted{casync::to_seconds(made.result.iteration), made.interval};
  };
  const auto note = [&](const std::string& sentence) {
    if (!sentence.empty()) report.notes.push_back(sentence);
  };
  Prediction predicted = predict(profile);
  report.predicted = told(predicted);
  report.kinds =
      traces::compare_by_kind(job.graph, predicted.result.timeline, outcome.replayed.timeline);
  note(predicted.differs);
  if (outcome.watched) {
    report.drift = drift(watched.probes, profile.probes);
    report.drifted = watched.moved > 0 || is_beyond(*report.drift, known);
    note(describe(*report.drift, known));
    note(describe_movement(watched, "the replay"));
    if (line.reprobe) report.reprobed = told(predict(as_fast_as_now(profile, *report.drift)));
  }
  return std::move(predicted.result);
}

}  // namespace hipress::replay
