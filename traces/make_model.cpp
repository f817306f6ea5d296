#include "traces/make_model.hpp"

#include "io/error.hpp"
#include "traces/averaged_model.hpp"
#include "traces/sharded_model.hpp"

namespace hipress::traces {

ImportedModel model_of(const Imported& trace, const std::string& name, const ImportOptions& options,
                       std::vector<std::string>& diagnostics) {
  if (!trace.has_steps || trace.steps.empty()) {
    throw io::Unmet("no model: the trace does not tell the start of its steps");
  }
  if (!trace.problem.empty()) throw io::Unmet("no model: " + trace.problem);
  diagnostics.insert(diagnostics.end(), trace.assumed.begin(), trace.assumed.end());
  const std::vector<NamedSharding> shardings = shardings_of(trace);
  std::vector<std::string> of_model;  // reported only if there is a model
  ImportedModel made = shardings.empty()
                           ? averaged_model(trace, name, options, diagnostics, of_model)
                           : sharded_model(trace, shardings, name, diagnostics, of_model);
  diagnostics.insert(diagnostics.end(), of_model.begin(), of_model.end());
  return made;
}

}  // namespace hipress::traces
