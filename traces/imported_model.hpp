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

/// The model of the job that a trace is of.
namespace hipress::traces {

/// A model, and where it comes from.
struct ImportedModel {
  models::Model model;
  std::optional<models::Traced> traced;  ///< none: the trace has no times
  /// Medians over steps; none: the job is not sharded.
  std::optional<Sharding> sharding = {};
  JobAccount account = {};  ///< account of the steps behind the medians
  /// Collectives of gradients, and all others, in a step of a job that is not sharded.
  KindTotal averages = {}, other = {};
};

/// What a person who knows the job adds to its trace.
struct ImportOptions {
  /// Every all-reduce carries gradients; for traces that do not tell which do.
  bool every_all_reduce = false;
};

/// Writes a model YAML (docs/models.md) that models::read_model() and models::read_traced() read.
void write_model_yaml(std::ostream& out, const ImportedModel& imported);

}  // namespace hipress::traces
