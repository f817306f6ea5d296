#include "requests/replay.hpp"
#include "requests/result_forms.hpp"

namespace hipress::requests {
namespace {

using replay::Drift;
using replay::relative_error;
using replay::Report;
using Predicted = std::optional<Report::Predicted>;

std::optional<double> time_of(const Predicted& predicted) {
  return predicted ? std::optional(predicted->iteration_s) : std::nullopt;
}

std::optional<double> start_of(const Predicted& predicted) {
  return predicted ? std::optional(predicted->interval.p10_s) : std::nullopt;
}

std::optional<double> end_of(const Predicted& predicted) {
  return predicted ? std::optional(predicted->interval.p90_s) : std::nullopt;
}

void fill_measured(Record& record, const replay::Summary& measured) {
  record.add("median", measured.median, "The median");
  record.add("p10", measured.p10, "10th percentile of the iteration time");
  record.add("p90", measured.p90, "90th percentile of the iteration time");
}

void fill_drift(Record& record, const Drift& drift) {
  record.add("copy", drift.copy, "Copying memory; null if not measured");
  record.add("codec", drift.codec, "A codec");
  record.add("transport", drift.transport, "The transport");
}

void fill_kind(Record& record, const traces::KindComparison& row) {
  record.add("kind", std::string(casync::to_string(row.kind)), "Kind of task");
  record.add("tasks", row.tasks, "Number of tasks");
  record.add("predicted_s", row.predicted_s, "Sum of their predicted times");
  record.add("measured_s", row.measured_s, "Sum of their measured times");
}

void fill_prediction(Record& record, const Report& report) {
  const double measured_s = report.measured_iteration_s.median;
  const Predicted& predicted = report.predicted;
  record.add("predicted_iteration_s", time_of(predicted),
             "Predicted iteration time; null without a profile and on ranks other than 0, like its "
             "errors");
  record.add("predicted_iteration_s_p10", start_of(predicted),
             "Start of the 10–90 % interval of the median");
  record.add("predicted_iteration_s_p90", end_of(predicted), "End of that interval");
  record.add("relative_error", relative_error(time_of(predicted), measured_s),
             "Predicted minus measured time, over measured time");
  record.add(
      "within_interval", predicted ? predicted->within_interval(measured_s) : std::optional<bool>(),
      "True if the measured median lies in the interval; null if the interval is too wide to tell");
  record.add("too_uncertain",
             predicted ? std::optional(sim::too_uncertain(predicted->interval)) : std::nullopt,
             "True if the interval is wider than a factor of 3, so that it decides nothing");
  record.object(
      "drift", report.drift,
      "Speeds of probes now, relative to those in the profile; null if the profile has none",
      fill_drift);
  record.add(
      "drifted", report.drift ? std::optional(report.drifted) : std::nullopt,
      "True if a probe is beyond the profile's spread, or the speed changed during the replay");
  record.add("reprobed_iteration_s", time_of(report.reprobed),
             "Iteration time predicted with costs scaled by `drift`; with `reprobe`");
  record.add("reprobed_iteration_s_p10", start_of(report.reprobed), "The start of its interval");
  record.add("reprobed_iteration_s_p90", end_of(report.reprobed), "The end of its interval");
  record.add("reprobed_relative_error", relative_error(time_of(report.reprobed), measured_s),
             "Relative error of that prediction");
}

}  // namespace

void fill(Record& record, const Replayed& replayed) {
  const Report& report = replayed.report;
  const double measured_s = report.measured_iteration_s.median;
  const double exposed_s = report.exposed_s();
  record.add("ranks", report.ranks, "Number of ranks");
  record.add("steps_per_period", report.steps,
             "Steps per iteration; an iteration is a period of the schedule");
  record.add("utilization", measured_s > 0 ? report.compute_s / measured_s : 1.0,
             "Share of computation in the iteration");
  record.add("iterations", report.each_iteration_s.size(), "Number of measured iterations");
  record.object("measured_iteration_s", report.measured_iteration_s,
                "Measured iteration time in seconds: forward as in the model, backward, and the "
                "exposed part of synchronisation",
                fill_measured);
  record.add("each_measured_iteration_s", report.each_iteration_s,
             "Measured iterations, in the order in which they ran");
  record.add("process_cpu_s", report.process_cpu_s,
             "Median CPU time per iteration of rank 0's process, which includes all ranks that are "
             "its threads");
  fill_prediction(record, report);
  std::vector<std::string> notes;
  for (const std::string& note : report.notes) notes.push_back(sentence(note));
  record.add("notes", notes, "Notes on the comparison, one sentence each");
  record.add("compute_s", report.compute_s, "Forward and backward");
  record.add("measured_exposed_communication_s", exposed_s,
             "Measured iteration time minus `compute_s`");
  record.add("predicted_exposed_communication_s", report.predicted_exposed_s(),
             "Predicted iteration time minus `compute_s`");
  record.add("exposed_communication_relative_error",
             relative_error(report.predicted_exposed_s(), exposed_s),
             "Relative error of exposed communication; null if none was exposed");
  record.add("verified", report.verified,
             "True: all values on all ranks were verified; values that differ are an error");
  record.add("bytes_sent_per_node", report.bytes_sent, "Bytes sent per iteration, by rank");
  record.list("kinds", report.kinds,
              "Tasks of the median iteration, by kind; empty without a prediction", fill_kind);
  record.add_if_any(
      "predicted_for",
      replayed.predicted_for ? std::optional(sentence(*replayed.predicted_for)) : std::nullopt,
      "Machines that the prediction is for; with a profile");
  record.object_if_any(
      "automatic", replayed.automatic,
      "With `auto`: what was predicted and measured, and which plan would be chosen",
      [](Record& made, const AutomaticReplay& automatic) { fill(made, automatic); });
}

constinit const ResultForm kReplayForm = {
    "replay", "A replay", "Result of a replay request, and of hipress-exec", schema_of<Replayed>};

io::Document document(const Replayed& replayed) { return document_of(replayed); }

}  // namespace hipress::requests
