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

/// Model of a traced job.
namespace hipress::traces {

/// A model, and quantities of the trace behind it.
struct ImportedModel {
  models::Model model;
  std::optional<models::Traced> traced;  ///< empty: the trace has no times
  /// Sharding, with medians over steps; empty if the job is not sharded.
  std::optional<Sharding> sharding = {};
  JobAccount account = {};  ///< quantities for check_accounts()
  /// Totals per step of a job that is not sharded: collectives of gradients, and all others.
  KindTotal averages = {}, other = {};
};

/// Knowledge of the user about the job.
struct ImportOptions {
  /// True if every all-reduce carries gradients, for traces that do not tell.
  bool every_all_reduce = false;
};

/// Writes a model YAML (docs/models.md) for models::read_model() and models::read_traced().
void write_model_yaml(std::ostream& out, const ImportedModel& imported);

}  // namespace hipress::traces
