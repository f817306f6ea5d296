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
  record.add("p10", measured.p10, "One iteration in ten is shorter");
  record.add("p90", measured.p90, "One iteration in ten is longer");
}

void fill_drift(Record& record, const Drift& drift) {
  record.add("copy", drift.copy, "Copying memory; null: not run");
  record.add("codec", drift.codec, "A codec");
  record.add("transport", drift.transport, "The transport");
}

void fill_kind(Record& record, const traces::KindComparison& row) {
  record.add("kind", std::string(casync::to_string(row.kind)), "The kind");
  record.add("tasks", row.tasks, "How many");
  record.add("predicted_s", row.predicted_s, "The sum of their predicted times");
  record.add("measured_s", row.measured_s, "The sum of their measured times");
}

void fill_prediction(Record& record, const Report& report) {
  const double measured_s = report.measured_iteration_s.median;
  const Predicted& predicted = report.predicted;
  record.add("predicted_iteration_s", time_of(predicted),
             "The prediction; null without a profile, as its errors are, and on ranks other than "
             "0");
  record.add("predicted_iteration_s_p10", start_of(predicted),
             "The interval of the median of so many iterations");
  record.add("predicted_iteration_s_p90", end_of(predicted), "Its end");
  record.add("relative_error", relative_error(time_of(predicted), measured_s),
             "Predicted less measured, over measured");
  record.add("within_interval",
             predicted ? predicted->within_interval(measured_s) : std::optional<bool>(),
             "Whether the measured median lies in the interval; null where that is too uncertain");
  record.add("too_uncertain",
             predicted ? std::optional(sim::too_uncertain(predicted->interval)) : std::nullopt,
             "Whether the interval is wider than a factor of 3, so that nearly anything lies in "
             "it");
  record.object("drift", report.drift, "Speeds of probes now over then; null: the profile has none",
                fill_drift);
  record.add("drifted", report.drift ? std::optional(report.drifted) : std::nullopt,
             "Whether one of them is beyond the profile's spread, or the speed changed during the "
             "replay");
  record.add("reprobed_iteration_s", time_of(report.reprobed),
             "With `reprobe`: predicted with costs scaled by `drift`");
  record.add("reprobed_iteration_s_p10", start_of(report.reprobed), "The start of its interval");
  record.add("reprobed_iteration_s_p90", end_of(report.reprobed), "The end of its interval");
  record.add("reprobed_relative_error", relative_error(time_of(report.reprobed), measured_s),
             "Its error");
}

}  // namespace

void fill(Record& record, const Replayed& replayed) {
  const Report& report = replayed.report;
  const double measured_s = report.measured_iteration_s.median;
  const double exposed_s = report.exposed_s();
  record.add("ranks", report.ranks, "Ranks that took part");
  record.add("steps_per_period", report.steps,
             "Steps of an iteration, which is a period of the schedule");
  record.add("utilization", measured_s > 0 ? report.compute_s / measured_s : 1.0,
             "Computation's share of the iteration");
  record.add("iterations", report.each_iteration_s.size(), "Iterations that were measured");
  record.object("measured_iteration_s", report.measured_iteration_s,
                "Forward, as the model says, backward, and the part of synchronisation behind it; "
                "in seconds",
                fill_measured);
  record.add("each_measured_iteration_s", report.each_iteration_s,
             "In the order in which they were run");
  record.add("process_cpu_s", report.process_cpu_s,
             "CPU time of rank 0's process in an iteration, or of all ranks that are its threads; "
             "median");
  fill_prediction(record, report);
  std::vector<std::string> notes;
  for (const std::string& note : report.notes) notes.push_back(sentence(note));
  record.add("notes", notes, "What to know before comparing, a sentence each");
  record.add("compute_s", report.compute_s, "Forward and backward");
  record.add("measured_exposed_communication_s", exposed_s,
             "The measured iteration less `compute_s`");
  record.add("predicted_exposed_communication_s", report.predicted_exposed_s(),
             "The predicted iteration less `compute_s`");
  record.add("exposed_communication_relative_error",
             relative_error(report.predicted_exposed_s(), exposed_s),
             "The error of that; null: none was exposed");
  record.add("verified", report.verified,
             "True: all values on all ranks; values that differ are an error");
  record.add("bytes_sent_per_node", report.bytes_sent, "In an iteration, by rank");
  record.list("kinds", report.kinds,
              "Tasks of the median iteration, by kind; empty without a prediction", fill_kind);
  record.add_if_any(
      "predicted_for",
      replayed.predicted_for ? std::optional(sentence(*replayed.predicted_for)) : std::nullopt,
      "With a profile: the machines that were predicted for");
}

constinit const ResultForm kReplayForm = {
    "replay", "A replay", "Of a replay request, and of hipress-exec", schema_of<Replayed>};

io::Document document(const Replayed& replayed) { return document_of(replayed); }

}  // namespace hipress::requests
