#pragma once

#include <string_view>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "plans/plan_options.hpp"
#include "plans/trust.hpp"
#include "requests/field.hpp"

/// Fields of several requests, each declared once: they hold what the libraries take.
namespace hipress::requests {

/// Of the machines. `without_profile` says in the help what happens if no profile is given.
void add(Fields& fields, costs::MachineOptions& options, std::string_view without_profile);

/// Of a model's times.
void add(Fields& fields, models::TimeOptions& options);

/// What is changed of a plan.
void add(Fields& fields, plans::PlanOptions& options);

/// trust_plan.
void add(Fields& fields, plans::Trust& trust);

}  // namespace hipress::requests
