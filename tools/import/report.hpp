#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"

/// Report of hipress-import, on stdout. Diagnostics are logged on stderr.
namespace hipress::traces {

/// Prints the report as text; `imported` is null if no model was made.
void print_report(const Imported& trace, const ImportedModel* imported,
                  const std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
