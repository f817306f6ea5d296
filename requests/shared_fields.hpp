#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "casync/schedule.hpp"
#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "plans/plan_options.hpp"
#include "plans/trust.hpp"
#include "requests/field.hpp"

/// Fields of several requests, each declared once: they hold what the libraries take.
namespace hipress::requests {

/// Adds the fields of machines. `without_profile` says in the help what happens if no profile is
/// given, and `idle` when one that is given has no effect.
void add(Fields& fields, costs::MachineOptions& options, std::string_view without_profile,
         const Case& idle = {});

/// Adds the fields of a model's times. They are refused in the case; empty: never.
void add(Fields& fields, models::TimeOptions& options, const Case& refusal = {});
/// Adds the fields of a job whose computation is derived. All but `dtype` are refused in the case.
void add_job(Fields& fields, models::TimeOptions& options, const Case& refusal = {});

/// Adds the fields that change a plan. `why_idle` says why a field has no effect; empty: it has
/// one.
void add(Fields& fields, plans::PlanOptions& options,
         const std::function<std::string(std::string_view name)>& why_idle = {});

/// trust_plan, which has no effect in that case; empty: in none.
void add(Fields& fields, plans::Trust& trust, const Case& idle = {});

/// "ddp (the mean of …) or local(steps, …) (…)": the schedules, for help.
std::string describe_schedules();

/// The help of `wrap`, a rule for the layers of schedules.
std::string describe_wrap();

/// The schedule that the field `schedule` says. InputError for one that there is not, or that does
/// not fit the model.
casync::Schedule read_schedule(const std::string& text, const models::Model& model);

/// Those of a text with several values of a parameter (casync::Schedule::parse_set()) that fit the
/// model; where none does, InputError as for one.
std::vector<casync::Schedule> read_schedules(const std::string& text, const models::Model& model);

}  // namespace hipress::requests
