#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/schedule.hpp"
#include "casync/task_graph.hpp"
#include "models/model.hpp"
#include "replay/drift.hpp"
#include "replay/replay.hpp"
#include "sim/forecast.hpp"
#include "traces/timeline.hpp"

namespace hipress::replay {

/// Median, and the spread around it, by linear interpolation between the sorted values.
struct Summary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};
Summary summarise(std::vector<double> values);  ///< of at least one value

/// Prediction and measurement of one graph, laid side by side. Iteration times include forward, if
/// the model gives one, although a replay of one step does not run it.
struct Report {
  std::uint32_t ranks = 0;
  Summary measured_iteration_s;
  std::vector<double> each_iteration_s;  ///< in the order in which they were run
  std::uint32_t steps = 1;               ///< of an iteration: a period of the schedule
  double compute_s = 0;                  ///< forward and backward, of all steps
  double process_cpu_s = 0;              ///< rank 0's process, median of the iterations
  /// A predicted iteration, in seconds.
  struct Predicted {
    double iteration_s = 0;
    sim::Interval interval;
    /// None where the interval is too wide to tell.
    std::optional<bool> within_interval(double measured_s) const;
  };
  std::optional<Predicted> predicted;  ///< none without a profile
  std::optional<Predicted> reprobed;   ///< with costs as fast as now; none unless asked for
  std::optional<Drift> drift;      ///< since the profile was measured; none unless it has probes
  bool drifted = false;            ///< the machine is not as fast as then, or was not all the time
  std::vector<std::string> notes;  ///< sentences to know before comparing
  bool verified = false;
  std::vector<std::int64_t> bytes_sent;
  std::vector<traces::KindComparison> kinds;  ///< empty without a prediction

  /// The measured iteration less computation.
  double exposed_s() const { return measured_iteration_s.median - compute_s; }
  std::optional<double> predicted_exposed_s() const;
};

/// (predicted - measured) / measured; nothing where nothing was measured to be wrong about.
std::optional<double> relative_error(std::optional<double> predicted, double measured);

/// What was measured, without predictions and what is told of them.
Report make_report(const models::Model& model, const casync::Schedule& schedule,
                   const casync::TaskGraph& graph, const ReplayResult& replayed);

}  // namespace hipress::replay
