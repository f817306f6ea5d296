#pragma once

#include <string>

#include "requests/field.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hipress::tools {

/// The option of a field: "gpus_per_node" is --gpus-per-node, or what `name` says. The variable of
/// the field must live as long as the app; the field itself need not.
CLI::Option& bind(CLI::App& app, const requests::Field& field, std::string name = {});

/// The options of all fields.
void bind(CLI::App& app, const requests::Fields& fields);

/// The flag --json.
void declare_json(CLI::App& app, bool& json,
                  std::string help = "Print one JSON object instead of the report");

}  // namespace hipress::tools
