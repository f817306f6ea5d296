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

/// Parts of models that jobs with averaged gradients and sharded jobs share.
namespace hipress::traces {

using Steps = std::vector<const TracedStep*>;

/// Share of the gradients' elements below which data may be a norm, a metric or a buffer.
inline constexpr double kSmall = 0.01;

/// Type by name. Throws io::Unmet, with the gradient, for unsupported types.
models::Dtype dtype_named(const std::string& name, const std::string& gradient);

/// Median over steps; empty if a step has no value.
std::optional<double> median_of(
    const Steps& steps, const std::function<std::optional<double>(const TracedStep&)>& value);

/// Throws io::Unmet for an impossible time.
void check_time(double seconds, const std::string& what);

/// Medians of the steps' times; empty if they are unknown.
std::optional<models::Traced> traced_of(const Steps& steps);

/// GPU time of a step in seconds; empty if unknown.
std::optional<double> shown_s(const TracedStep& step);

/// Total size of the gradients, bytes.
std::int64_t bytes_of(const models::Model& model);

/// Optimizer time: rest of a step by the model's medians, or else the optimizers' traced steps.
std::optional<double> optimizer_s(const models::Model& model, const Steps& steps);

/// Reports communication that no plan changes, if its bytes or its exposed time matter.
void say_others(const StepAccount& step, const KindTotal& other,
                const std::optional<models::Traced>& traced, std::vector<std::string>& diagnostics);

/// Format, hardware and ranks of the trace.
std::string source_of(const Imported& trace);

/// Sets the model's compute classes, if kernel names tell enough.
void add_mix(const Imported& trace, models::Model& model, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
