#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/traced.hpp"
#include "traces/accounting.hpp"
#include "traces/imported.hpp"
#include "traces/sharded.hpp"

/// Functions for models of both kinds of jobs: those that average gradients, and sharded ones.
namespace hipress::traces {

using Steps = std::vector<const TracedStep*>;

/// Share of the gradients' elements below which a collective may carry a norm, a metric or a
/// buffer.
inline constexpr double kSmall = 0.01;

/// Type of that name. Throws io::Unmet, which names the gradient, if the type is not supported.
models::Dtype dtype_named(const std::string& name, const std::string& gradient);

/// Median over the steps; empty if the value is missing in a step.
std::optional<double> median_of(
    const Steps& steps, const std::function<std::optional<double>(const TracedStep&)>& value);

/// Throws io::Unmet if the time is longer than a model can have.
void check_time(double seconds, const std::string& what);

/// Medians of the times of the steps; empty if a time is unknown.
std::optional<models::Traced> traced_of(const Steps& steps);

/// Computation, exposed communication and idle time of a step, in seconds; empty if unknown.
std::optional<double> shown_s(const TracedStep& step);

/// Total size of the gradients in bytes.
std::int64_t bytes_of(const models::Model& model);

/// Time of the optimizer: the rest of a step, or the traced optimizer steps if the rest is unknown.
std::optional<double> optimizer_s(const models::Model& model, const Steps& steps);

/// Reports communication that no plan changes, if it has many bytes or much exposed time.
void say_others(const StepAccount& step, const KindTotal& other,
                const std::optional<models::Traced>& traced, std::vector<std::string>& diagnostics);

/// Text with the format, the hardware and the ranks of the trace.
std::string source_of(const Imported& trace);

/// Sets the model's mix of compute classes if enough kernel names are recognised.
void add_mix(const Imported& trace, models::Model& model, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
