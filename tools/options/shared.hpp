#pragma once

#include <string_view>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "plans/plan_options.hpp"
#include "plans/trust.hpp"

namespace CLI {
class App;
}

/// Options that several tools have, each declared once: they read what the libraries take.
namespace hipress::tools {

/// Of the machines. `without_profile` says in the help what happens if no profile is given.
void declare(CLI::App& app, costs::MachineOptions& options, std::string_view without_profile);

/// Of a model's times.
void declare(CLI::App& app, models::TimeOptions& options);

/// What is changed of a plan.
void declare(CLI::App& app, plans::PlanOptions& options);

/// --trust-plan.
void declare(CLI::App& app, plans::Trust& trust);

}  // namespace hipress::tools
