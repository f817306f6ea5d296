#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"
#include "traces/sharded_steps.hpp"

namespace hipress::traces {

/// Finds the sharding of each step; empty if the job is not sharded.
std::vector<NamedSharding> shardings_of(const Imported& trace);

/// Makes the model of a sharded job. Its layers are in the order of reduction. Appends to
/// `of_model` the remarks that only matter if the model can be finished.
ImportedModel sharded_model(const Imported& trace, const std::vector<NamedSharding>& steps,
                            const std::string& name, std::vector<std::string>& diagnostics,
                            std::vector<std::string>& of_model);

}  // namespace hipress::traces
