#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"
#include "traces/sharded_steps.hpp"

namespace hipress::traces {

/// Sharding of each step; empty if the job is not sharded.
std::vector<NamedSharding> shardings_of(const Imported& trace);

/// Makes the model of a sharded job: its layers in order of reduction. Appends statements that hold
/// only for a finished model to `of_model`.
ImportedModel sharded_model(const Imported& trace, const std::vector<NamedSharding>& steps,
                            const std::string& name, std::vector<std::string>& diagnostics,
                            std::vector<std::string>& of_model);

}  // namespace hipress::traces
