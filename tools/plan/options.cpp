#include "tools/plan/options.hpp"

#include <CLI/CLI.hpp>

#include "requests/headings.hpp"
#include "tools/options/fields.hpp"

namespace hipress::planner {

namespace {

/// The field itself, or that of one number of hosts as a list of them.
requests::Field of_hosts(requests::Field field, Options& options) {
  if (field.to != requests::Variable(&options.request.request.machines.hosts)) return field;
  field.to = &options.hosts;
  field.bounds = {};
  field.help += "; of several, 1,2,4, it says what each more adds, and plans nothing";
  return field;
}

}  // namespace

void declare_options(CLI::App& app, Options& options) {
  for (const requests::Field& field : fields(options.request)) {
    if (field.name == "trust_plan") {
      app.add_flag("--baselines", options.baselines,
                   "Print the times of the plan and its baselines (implied by --profile, "
                   "--cluster, X.yaml)")
          ->group(std::string(requests::headings::kOutput));
    }
    if (field.name == "page") continue;  // for those who call: a command line has files
    const CLI::Option& option = tools::bind(app, of_hosts(field, options));
    if (field.name == "disable_pass") {
      app.add_flag("--list-passes", options.list_passes,
                   "Say what passes there are and what each does, and end")
          ->group(option.get_group());
    }
  }
  tools::declare_json(app, options.json);
}

}  // namespace hipress::planner
