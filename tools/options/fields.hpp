#pragma once

#include <string>

#include "requests/field.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hipress::tools {

/// Adds the option of a field: --gpus-per-node for "gpus_per_node", unless `name` is given. The
/// field's variable must outlive the app; the field itself need not.
CLI::Option& bind(CLI::App& app, const requests::Field& field, std::string name = {});

void bind(CLI::App& app, const requests::Fields& fields);

/// Adds the flag --json.
void declare_json(CLI::App& app, bool& json,
                  std::string help = "Print one JSON object instead of the report");

}  // namespace hipress::tools
