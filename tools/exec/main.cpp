// hipress-exec: replays a plan, and lays the measurement beside the prediction.

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "costs/description.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/spelling.hpp"
#include "replay/device_choice.hpp"
#include "replay/gradient_files.hpp"
#include "tools/exec/folders.hpp"
#include "tools/exec/forecast.hpp"
#include "tools/exec/job.hpp"
#include "tools/exec/replays.hpp"
#include "tools/exec/report.hpp"
#include "tools/frame.hpp"
#include "traces/timeline.hpp"

namespace {

using namespace hipress;
using replay::CommandLine;

void write_trace(const CommandLine& line, const replay::Job& job,
                 const replay::ReplayResult& replayed,
                 const std::optional<sim::Result>& predicted) {
  const std::vector<std::string> names =
      casync::unit_names(casync::make_layout(job.model, job.plan.plan));
  std::vector<const traces::Timeline*> timelines;
  if (predicted) timelines.push_back(&predicted->timeline);
  timelines.push_back(&replayed.timeline);
  io::write_file(line.trace, [&](std::ostream& out) {
    traces::write_chrome_trace(
        out, job.graph, names, timelines,
        {.model = job.model.name, .plan = plans::title(line.plan, job.plan.plan)});
  });
}

/// Prints what was measured, and what was predicted if there is a forecast.
void print_results(const CommandLine& line, const replay::Job& job,
                   const std::optional<replay::Forecast>& forecast, const replay::Report& report) {
  const std::string predicted_for =
      forecast ? io::as_command_line(costs::describe_machines(
                     forecast->machines.profile, forecast->machines.cluster, job.model))
               : "";
  if (line.json) {
    auto json = replay::to_json(report);
    if (forecast) json["predicted_for"] = predicted_for;
    std::cout << json.print() << "\n";
  } else {
    replay::print(std::cout, report);
    if (forecast) std::cout << "predicted for " << predicted_for << "\n";
  }
}

int run(CommandLine& line) {
  const std::optional<io::Launch> launch = io::read_launch();
  const bool reports = !launch || launch->rank == 0;
  if (reports && !line.trace.empty()) io::require_writable(line.trace);
  line.job.read_secret();
  const std::uint32_t ranks = replay::count_ranks(line, launch);
  const replay::DeviceChoice choice = replay::choose_device({.device = line.device,
                                                             .transport = line.transport,
                                                             .interface = line.job.interface,
                                                             .ranks = static_cast<int>(ranks)},
                                                            launch);
  line.replay.device = choice.device;
  line.replay.nccl = choice.nccl;
  line.job.warn_of_unused(launch, replay::CommandLine().job, line.transport == "nccl");
  const replay::Job job = replay::make_job(line, ranks);
  line.replay.backward =
      line.backward == "spin" ? replay::Backward::kSpin : replay::Backward::kIdle;
  const std::optional<replay::Forecast> forecast = replay::prepare_forecast(line, job);
  std::optional<replay::GradientFiles> gradients;
  if (!line.gradients.empty()) gradients.emplace(line.gradients, job.model, ranks);
  line.replay.gradients = gradients ? &*gradients : nullptr;
  replay::prepare_folders(line, job, launch, ranks);
  if (reports && !line.trace.empty()) io::refuse_input(line.trace);
  if (reports) replay::say(job, forecast);
  line.replay.timeline = forecast || !line.trace.empty();
  if (line.verbose) {
    line.replay.progress = [](int iteration) {
      tools::inform(fmt::format("iteration {}", iteration));
    };
  }
  const replay::Outcome outcome =
      replay::run_replays(line, launch, choice.transport, job, watching_of(line, forecast));
  if (!reports) return 0;
  replay::Report report =
      replay::make_report(job.model, job.plan.plan.schedule, job.graph, outcome.replayed);
  std::optional<sim::Result> predicted;
  if (forecast) predicted = replay::report_prediction(line, job, *forecast, outcome, report);
  print_results(line, job, forecast, report);
  // Last, since what was measured is worth more than a trace that cannot be written after all.
  if (!line.trace.empty()) write_trace(line, job, outcome.replayed, predicted);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  return tools::run_tool(
      argc, argv,
      {.name = "hipress-exec",
       .purpose = "Really synchronises a model's gradients between ranks as a plan says, verifies "
                  "every value, and lays "
                  "the measured times beside the predicted ones.",
       .example = "hipress-exec --input vgg19 --plan all --topology RING --nnodes 4"},
      [&](CLI::App& app) { replay::declare(app, line); }, [&] { return run(line); });
}
