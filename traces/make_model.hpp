#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"

namespace hipress::traces {

/// Makes the model of a trace: its gradients, or its buckets if gradients have no sizes. Times are
/// medians over the steps that have the same layout as the last step. io::Unmet, which names what
/// is missing, if the trace tells no sizes, or if elements are not conserved over steps, or from
/// gradients to buckets. `diagnostics` gets what a reader of the model must know.
ImportedModel model_of(const Imported& trace, const std::string& name, const ImportOptions& options,
                       std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
