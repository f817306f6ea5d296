#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"

namespace hipress::traces {

/// Makes the model of a job that averages gradients: of these, or of the buckets that carry them.
/// `diagnostics` gets what the trace lacks, and `of_model` what is true of the model if it is made.
ImportedModel averaged_model(const Imported& trace, const std::string& name,
                             const ImportOptions& options, std::vector<std::string>& diagnostics,
                             std::vector<std::string>& of_model);

}  // namespace hipress::traces
