#include "tools/plan/options.hpp"

#include <CLI/CLI.hpp>

#include "tools/options/fields.hpp"

namespace hipress::planner {

void declare_options(CLI::App& app, Options& options) {
  for (const requests::Field& field : fields(options.request)) {
    if (field.name == "trust_plan") {
      app.add_flag("--baselines", options.baselines,
                   "Print the times of the plan and its baselines (implied by --profile, "
                   "--cluster, X.yaml)");
    }
    if (field.name == "page") continue;  // for those who call: a command line has files
    const CLI::Option& option = tools::bind(app, field);
    if (field.name == "disable_pass") {
      app.add_flag("--list-passes", options.list_passes,
                   "Say what passes there are and what each does, and end")
          ->group(option.get_group());
    }
  }
  app.add_flag("--json", options.json, "Print one JSON object instead of the report");
}

}  // namespace hipress::planner
