#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"

namespace hipress::traces {

/// Makes the model of a job that averages gradients, from the gradients or from the buckets that
/// carry them. Appends remarks on gaps in the trace to `diagnostics`. Appends to `of_model` the
/// remarks that only matter if the model can be finished.
ImportedModel averaged_model(const Imported& trace, const std::string& name,
                             const ImportOptions& options, std::vector<std::string>& diagnostics,
                             std::vector<std::string>& of_model);

}  // namespace hipress::traces
