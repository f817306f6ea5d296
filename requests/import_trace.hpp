#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "requests/field.hpp"
#include "requests/hooks.hpp"
#include "requests/record.hpp"
#include "traces/imported_model.hpp"

/// The request "import_trace"; hipress-import makes it from its command line.
namespace hipress::requests {

struct ImportRequest {
  std::string trace;
  std::string output;  ///< empty: no model is written
  traces::ImportOptions import;
};

/// Fields of the request; they point into it.
Fields fields(ImportRequest& request);

/// Contents of a trace, and the model made from them.
struct ImportedTrace {
  traces::Imported trace;
  std::optional<traces::ImportedModel> model;  ///< none: `refusal` gives the reason
  std::optional<io::Unmet> refusal;
  std::vector<std::string> diagnostics;  ///< notes about the model

  const traces::ImportedModel* model_or_null() const { return model ? &*model : nullptr; }
};

/// Reads the trace, and makes its model if it has enough data. Writes nothing. Throws
/// io::InputError for an invalid trace, or an output that cannot be written.
ImportedTrace import_trace(const ImportRequest& request);

/// Writes the model if an output is named. Throws `refusal` if the model is missing.
void write_model(const ImportRequest& request, const ImportedTrace& imported);

/// Document that --json prints.
io::Document document(const ImportedTrace& imported);
void fill(Record& record, const ImportedTrace& imported);

/// Answers the request. Throws UnmetWithResult if the trace gives no model.
io::Document answer(const ImportRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
