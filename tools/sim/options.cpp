#include "tools/sim/options.hpp"

#include <CLI/CLI.hpp>

#include "tools/options/fields.hpp"

namespace hipress::sim {

void declare(CLI::App& app, CommandLine& line) {
  for (const requests::Field& field : fields(line.request)) tools::bind(app, field);
  tools::declare_json(app, line.json);
}

}  // namespace hipress::sim
