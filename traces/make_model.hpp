#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"

namespace hipress::traces {

/// Makes the model of a trace from its gradients, or from its buckets if gradients have no sizes.
/// Times are medians over the steps that have the last step's layout. Throws io::Unmet, which says
/// what is missing, if sizes are unknown, or if the number of elements changes between steps or
/// from gradients to buckets. Appends remarks for the user of the model to `diagnostics`.
ImportedModel model_of(const Imported& trace, const std::string& name, const ImportOptions& options,
                       std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
