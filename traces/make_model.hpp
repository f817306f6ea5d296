#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"

namespace hipress::traces {

/// Makes the model of a trace from its gradients, or from buckets if gradients have no sizes. Times
/// are medians over the steps with the layout of the last one. Throws io::Unmet, with what is
/// missing, if sizes are unknown, or if elements are not conserved over steps or from gradients to
/// buckets. Appends remarks for the reader of the model to `diagnostics`.
ImportedModel model_of(const Imported& trace, const std::string& name, const ImportOptions& options,
                       std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
