#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/document.hpp"
#include "replay/pairs.hpp"
#include "replay/report.hpp"
#include "requests/automatic.hpp"
#include "requests/record.hpp"
#include "requests/replay_job.hpp"
#include "traces/timeline.hpp"

/// Results of the request "replay".
namespace hipress::requests {

/// Prediction, measurement, and the plan that would be chosen.
struct AutomaticReplay {
  AutomaticChoice choice;
  std::uint32_t ranks = 0;
  double plain_s = 0;                    ///< measured iteration time without compression, a median
  std::optional<double> planned_s = {};  ///< measured time with the plan; none: no plan
  replay::Speedups speedups = {};        ///< speedups of the plan, in pairs of blocks
  std::size_t pairs = 0;

  /// True if the plan was predicted and measured to be faster by more than the noise.
  bool takes_plan() const {
    return choice.is_worth() && speedups.verdict == replay::Verdict::kFaster;
  }
  const AutomaticPlan& taken() const { return takes_plan() ? *choice.planned : choice.plain; }
  /// One line each for links, prediction, measurement and choice.
  std::vector<std::string> lines() const;
};

void fill(Record& record, const AutomaticReplay& automatic);

/// Result of a replay in this process. Numbers are the same on all ranks; predictions are only on
/// the rank that reports.
struct Replayed {
  bool reports = true;  ///< this process's result is the job's
  ReplayJob job;
  replay::Report report;
  std::optional<std::string> predicted_for = {};  ///< none: no prediction
  traces::Timeline measured;
  std::optional<traces::Timeline> predicted = {};
  std::optional<AutomaticReplay> automatic = {};  ///< none: the plan was given
};

/// Document that --json prints.
io::Document document(const Replayed& replayed);
void fill(Record& record, const Replayed& replayed);

}  // namespace hipress::requests
