#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "requests/field.hpp"
#include "requests/hooks.hpp"
#include "requests/record.hpp"
#include "traces/imported_model.hpp"

/// The request "import_trace", which hipress-import makes of its command line.
namespace hipress::requests {

struct ImportRequest {
  std::string trace;
  std::string output;  ///< empty: no model is written
  traces::ImportOptions import;
};

/// Its fields; they point into the request.
Fields fields(ImportRequest& request);

/// What a trace tells, and the model that it is.
struct ImportedTrace {
  traces::Imported trace;
  std::optional<traces::ImportedModel> model;  ///< none: `refusal` says why
  std::optional<io::Unmet> refusal;
  std::vector<std::string> diagnostics;  ///< what a reader of the model must know

  const traces::ImportedModel* model_or_null() const { return model ? &*model : nullptr; }
};

/// Reads the trace, and makes its model if it tells enough. Writes nothing. io::InputError for what
/// is no trace, or an output that cannot be written.
ImportedTrace import_trace(const ImportRequest& request);

/// Writes the model if an output is named. Throws the refusal if there is no model.
void write_model(const ImportRequest& request, const ImportedTrace& imported);

/// What --json prints.
io::Document document(const ImportedTrace& imported);
void fill(Record& record, const ImportedTrace& imported);

/// Answers the request. Without a model: UnmetWithResult.
io::Document answer(const ImportRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
