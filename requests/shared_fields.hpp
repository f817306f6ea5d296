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

/// Fields that several requests have, each declared once. They set the libraries' options.
namespace hipress::requests {

/// Adds the fields for machines. `without_profile` is the part of the help that says what is used
/// without a profile. `idle` is the case in which a given profile has no effect.
void add(Fields& fields, costs::MachineOptions& options, std::string_view without_profile,
         const Case& idle = {});

/// Adds the fields for a model's times. They are refused in the case `refusal`.
void add(Fields& fields, models::TimeOptions& options, const Case& refusal = {});
/// Adds the fields of a job whose computation time is derived. All but `dtype` are refused in the
/// case `refusal`.
void add_job(Fields& fields, models::TimeOptions& options, const Case& refusal = {});

/// Adds the fields that change a plan. `why_idle` returns the reason why a field has no effect, or
/// an empty text if it has one.
void add(Fields& fields, plans::PlanOptions& options,
         const std::function<std::string(std::string_view name)>& why_idle = {});

/// Adds `trust_plan`, which has no effect in the case `idle`.
void add(Fields& fields, plans::Trust& trust, const Case& idle = {});

/// List of schedules for the help: "ddp (the mean of …) or local(steps, …) (…)".
std::string describe_schedules();

/// Help text of `wrap`, a rule that divides a model into layers for schedules.
std::string describe_wrap();

/// Parses the field `schedule`. Throws InputError if it is unknown or does not fit the model.
casync::Schedule read_schedule(const std::string& text, const models::Model& model);

/// Parses a text with several values of a parameter (casync::Schedule::parse_set()), and keeps the
/// schedules that fit the model. Throws InputError if none does, as read_schedule() would.
std::vector<casync::Schedule> read_schedules(const std::string& text, const models::Model& model);

}  // namespace hipress::requests
