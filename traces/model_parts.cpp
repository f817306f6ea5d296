#include "traces/model_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "traces/intervals.hpp"

namespace hipress::traces {

models::Dtype dtype_named(const std::string& name, const std::string& gradient) {
  for (const models::Dtype dtype :
       {models::Dtype::kFloat32, models::Dtype::kFloat16, models::Dtype::kBfloat16}) {
    if (name == models::to_string(dtype)) return dtype;
  }
  throw io::Unmet(
      fmt::format("no model: {} is of type {}; float32, float16 and bfloat16 are planned", gradient,
                  name.empty() ? "that the trace does not tell" : io::quote(name)));
}

std::optional<double> median_of(
    const Steps& steps, const std::function<std::optional<double>(const TracedStep&)>& value) {
  std::vector<double> values;
  for (const TracedStep* step : steps) {
    const auto one = value(*step);
    if (!one) return std::nullopt;
    values.push_back(*one);
  }
  return median(std::move(values));
}

void check_time(double seconds, const std::string& what) {
  if (seconds <= models::kLongestTime_s) return;
  throw io::Unmet(fmt::format("no model: {} takes {}, more than the {:g}s that a model can have",
                              what, io::format_duration(seconds), models::kLongestTime_s));
}

std::optional<models::Traced> traced_of(const Steps& steps) {
  const auto part = [&](std::optional<double> TracedStep::*member) {
    return median_of(steps, [member](const TracedStep& step) { return step.*member; });
  };
  const auto length = part(&TracedStep::length_s), compute = part(&TracedStep::compute_s),
             communication = part(&TracedStep::communication_s),
             all = part(&TracedStep::exposed_communication_s), idle = part(&TracedStep::idle_s);
  if (!length || !compute || !communication || !all || !idle || *length <= 0) return {};
  const double exposed = part(&TracedStep::modelled_exposed_s).value_or(*all);
  return models::Traced{.steps = static_cast<int>(steps.size()),
                        .step_s = *length,
                        .compute_s = *compute,
                        .communication_s = *communication,
                        .exposed_communication_s = exposed,
                        .idle_s = *idle,
                        .other_communication_s = std::max(0.0, *all - exposed)};
}

std::optional<double> shown_s(const TracedStep& step) {
  if (!step.compute_s || !step.exposed_communication_s || !step.idle_s) return std::nullopt;
  return *step.compute_s + *step.exposed_communication_s + *step.idle_s;
}

std::int64_t bytes_of(const models::Model& model) {
  std::int64_t bytes = 0;
  for (const models::Gradient& gradient : model.gradients) {
    bytes += gradient.elements * static_cast<std::int64_t>(models::size_of(gradient.dtype));
  }
  return bytes;
}

std::optional<double> optimizer_s(const models::Model& model, const Steps& steps) {
  const auto over_steps = [&](std::optional<double> TracedStep::*member) {
    return median_of(steps, [member](const TracedStep& step) { return step.*member; });
  };
  const auto rest = rest_s({.passes = model.micro_steps,
                            .step_s = over_steps(&TracedStep::length_s),
                            .forward_s = model.forward_s,
                            .backward_s = models::backward_s(model),
                            .exposed_s = over_steps(&TracedStep::modelled_exposed_s)});
  return rest ? rest : over_steps(&TracedStep::optimizer_s);
}

void say_others(const StepAccount& step, const KindTotal& other,
                const std::optional<models::Traced>& traced,
                std::vector<std::string>& diagnostics) {
  const bool much =
      static_cast<double>(other.bytes) > kSmall * static_cast<double>(step.sent_bytes.value_or(0));
  const double exposed_s = traced ? traced->other_communication_s : 0;
  const bool slow = traced && exposed_s > kSmall * traced->step_s;
  if (other.count == 0 || (!much && !slow)) return;
  diagnostics.push_back(fmt::format(
      "{} collectives of {} carry no gradients but {}other data (activations, statistics, norms, "
      "metrics, parameters){}{}: no plan changes them",
      other.count, step.name,
      other.bytes > 0 ? fmt::format("{} of ", io::format_amount(other.bytes)) : "",
      other.bytes > 0 ? "" : ", whose sizes the trace does not tell",
      exposed_s > 0
          ? fmt::format(
                "; {} is exposed{}, and stays in the model's other times",
                io::format_duration(exposed_s),
                traced->steps > 1 ? fmt::format(" in the median of {} steps", traced->steps) : "")
          : ""));
}

std::string source_of(const Imported& trace) {
  return fmt::format("{} of {}{}", trace.format,
                     trace.hardware.empty() ? "unknown hardware" : trace.hardware,
                     trace.world_size ? fmt::format(", {} ranks", *trace.world_size) : "");
}

void add_mix(const Imported& trace, models::Model& model, std::vector<std::string>& diagnostics) {
  constexpr double kTooMuch = 0.5, kWorthSaying = 0.005;
  constexpr int kDigits = 3;
  if (!trace.mix) return;
  const double missing = trace.mix->unrecognised;
  if (missing <= kTooMuch) model.mix = models::rounded(trace.mix->mix, kDigits);
  if (missing < kWorthSaying) return;
  diagnostics.push_back(fmt::format(
      "kernels of {:.1f} % of the computation's time have names without a known class, most of it "
      "{}: {}",
      100 * missing, io::quote(trace.mix->longest_unrecognised),
      model.mix ? "the mix leaves them out"
                : "the model has no mix; add one by hand (mix: {gemm: 0.6, elementwise: 0.4})"));
}

}  // namespace hipress::traces
