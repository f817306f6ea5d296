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

/// What models of traces have in common, of jobs that average gradients and of sharded ones.
namespace hipress::traces {

using Steps = std::vector<const TracedStep*>;

/// Share of the gradients' elements below which data may be a norm, a metric or a buffer.
inline constexpr double kSmall = 0.01;

/// The type of that name. Throws io::Unmet, which names the gradient, for one that is not planned.
models::Dtype dtype_named(const std::string& name, const std::string& gradient);

/// The median over steps, if all of them tell.
std::optional<double> median_of(
    const Steps& steps, const std::function<std::optional<double>(const TracedStep&)>& value);

/// Throws io::Unmet for a time that no model can have.
void check_time(double seconds, const std::string& what);

/// Medians of the steps' times; none if the trace does not tell them.
std::optional<models::Traced> traced_of(const Steps& steps);

/// GPU time; empty if the trace does not tell.
std::optional<double> shown_s(const TracedStep& step);

/// Bytes of all gradients.
std::int64_t bytes_of(const models::Model& model);

/// Rest of a step by the model's medians, or else the optimizers' part of it.
std::optional<double> optimizer_s(const models::Model& model, const Steps& steps);

/// Reports other communication, which no plan changes, if its bytes or its exposed time matter.
void say_others(const StepAccount& step, const KindTotal& other,
                const std::optional<models::Traced>& traced, std::vector<std::string>& diagnostics);

/// Format, hardware and ranks of the trace.
std::string source_of(const Imported& trace);

/// The mix that the kernels' names tell, if they tell enough of it.
void add_mix(const Imported& trace, models::Model& model, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
