#pragma once

#include <string>
#include <vector>

#include "traces/imported_model.hpp"

/// What hipress-import prints on stdout; print_report() logs diagnostics on stderr.
namespace hipress::traces {

/// For people; `imported` is null where no model was made.
void print_report(const Imported& trace, const ImportedModel* imported,
                  const std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
