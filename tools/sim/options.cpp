#include "tools/sim/options.hpp"

#include <CLI/CLI.hpp>

#include "tools/options/fields.hpp"

namespace hipress::sim {

void declare(CLI::App& app, CommandLine& line) {
  for (const requests::Field& field : fields(line.request)) tools::bind(app, field);
  app.add_flag("--json", line.json, "Print one JSON object instead of the report");
}

}  // namespace hipress::sim
