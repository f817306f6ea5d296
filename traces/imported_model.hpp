#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/traced.hpp"
#include "traces/accounting.hpp"
#include "traces/imported.hpp"
#include "traces/sharded.hpp"

/// Models of traced jobs.
namespace hipress::traces {

/// A model, and quantities of the trace that it was made from.
struct ImportedModel {
  models::Model model;
  std::optional<models::Traced> traced;  ///< empty: the trace has no times
  /// Layers and schedule of a sharded job, with medians over steps; empty for other jobs.
  std::optional<Sharding> sharding = {};
  JobAccount account = {};  ///< quantities for check_accounts()
  /// Totals per step of a job that is not sharded: collectives of gradients, and all others.
  KindTotal averages = {}, other = {};
};

/// Facts about the job that only the user knows.
struct ImportOptions {
  /// True if every all-reduce carries gradients. For traces that do not show which ones do.
  bool every_all_reduce = false;
};

/// Writes a model YAML (docs/models.md), which models::read_model() and models::read_traced() read.
void write_model_yaml(std::ostream& out, const ImportedModel& imported);

}  // namespace hipress::traces
