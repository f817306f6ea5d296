#include "tools/sim/options.hpp"

#include <CLI/CLI.hpp>

#include "tools/options/fields.hpp"

namespace hipress::sim {

void declare(CLI::App& app, CommandLine& line) {
  tools::bind(app, fields(line.request));
  tools::declare_json(app, line.json);
}

}  // namespace hipress::sim
