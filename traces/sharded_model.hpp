#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"
#include "traces/sharded_steps.hpp"

namespace hipress::traces {

/// The sharding of each step; none at all if the job is not sharded.
std::vector<NamedSharding> shardings_of(const Imported& trace);

/// Makes the model of a sharded job: its layers, in the order in which they are reduced. `of_model`
/// gets what is true of the model if it is made.
ImportedModel sharded_model(const Imported& trace, const std::vector<NamedSharding>& steps,
                            const std::string& name, std::vector<std::string>& diagnostics,
                            std::vector<std::string>& of_model);

}  // namespace hipress::traces
