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

/// Quantiles, by linear interpolation between the sorted values.
struct Summary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};
Summary summarise(std::vector<double> values);  ///< requires at least one value

/// Prediction and measurement of one graph, side by side. Iteration times include forward, if the
/// model gives one, even if the replay does not run it.
struct Report {
  std::uint32_t ranks = 0;
  Summary measured_iteration_s;
  std::vector<double> each_iteration_s;  ///< in the order in which they were run
  std::uint32_t steps = 1;               ///< steps per iteration, which is a schedule's period
  double compute_s = 0;                  ///< forward and backward, of all steps
  double process_cpu_s = 0;              ///< rank 0's process, median of the iterations
  /// A predicted iteration, in seconds.
  struct Predicted {
    double iteration_s = 0;
    sim::Interval interval;
    /// True if the interval contains the measured time; unset if it is too wide to tell.
    std::optional<bool> within_interval(double measured_s) const;
  };
  std::optional<Predicted> predicted;  ///< unset without a profile
  std::optional<Predicted> reprobed;   ///< prediction with costs scaled by `drift`; unset unless
                                       ///< requested
  std::optional<Drift> drift;      ///< drift since the profile; unset if the profile has no probes
  bool drifted = false;            ///< the speed differs from the profile's, or varied meanwhile
  std::vector<std::string> notes;  ///< caveats of the comparison, as sentences
  bool verified = false;
  std::vector<std::int64_t> bytes_sent;
  std::vector<traces::KindComparison> kinds;  ///< empty without a prediction

  /// Exposed communication: the median measured iteration minus computation.
  double exposed_s() const { return measured_iteration_s.median - compute_s; }
  std::optional<double> predicted_exposed_s() const;
};

/// Relative error: (predicted - measured) / measured. Unset without a prediction, or unless
/// `measured` is positive.
std::optional<double> relative_error(std::optional<double> predicted, double measured);

/// Report of the measurement, without predictions, drift, notes and kinds.
Report make_report(const models::Model& model, const casync::Schedule& schedule,
                   const casync::TaskGraph& graph, const ReplayResult& replayed);

}  // namespace hipress::replay
