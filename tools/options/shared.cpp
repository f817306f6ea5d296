#include "tools/options/shared.hpp"

#include "requests/shared_fields.hpp"
#include "tools/options/fields.hpp"

namespace hipress::tools {
namespace {

template <class... Arguments>
void declare_fields(CLI::App& app, Arguments&&... arguments) {
  requests::Fields fields;
  requests::add(fields, arguments...);
  for (const requests::Field& field : fields) bind(app, field);
}

}  // namespace

void declare(CLI::App& app, costs::MachineOptions& options, std::string_view without_profile) {
  declare_fields(app, options, without_profile);
}

void declare(CLI::App& app, models::TimeOptions& options) { declare_fields(app, options); }

void declare(CLI::App& app, plans::PlanOptions& options) { declare_fields(app, options); }

void declare(CLI::App& app, plans::Trust& trust) { declare_fields(app, trust); }

}  // namespace hipress::tools
