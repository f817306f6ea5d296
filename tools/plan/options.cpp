#include "tools/plan/options.hpp"

#include <CLI/CLI.hpp>

#include "requests/headings.hpp"
#include "tools/options/fields.hpp"

namespace hipress::planner {

void declare_options(CLI::App& app, Options& options) {
  for (const requests::Field& field : fields(options.request)) {
    if (field.name == "trust_plan") {
      app.add_flag("--baselines", options.baselines,
                   "Print the times of the plan and its baselines (implied by --profile, "
                   "--cluster, X.yaml)")
          ->group(std::string(requests::headings::kOutput));
    }
    if (field.name == "page") continue;  // only for callers of the library
    const CLI::Option& option = tools::bind(app, field);
    if (field.name == "disable_pass") {
      app.add_flag("--list-passes", options.list_passes,
                   "List the passes and their effects, and exit")
          ->group(option.get_group());
    }
  }
  tools::declare_json(app, options.json);
}

}  // namespace hipress::planner
