#include "models/time_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::models {
namespace {

constexpr double kShareOfForward = 1.0 / 3;  // share of forward in forward and backward

double duration_of(const std::string& text, std::string_view option) {
  const double value = io::parse_duration(text, option);
  if (value <= kLongestTime_s) return value;
  throw io::InputError(
      fmt::format("{} must be at most {:g}s, got {}", option, kLongestTime_s, io::quote(text)));
}

void require_possible(const Model& model, std::string_view option, const std::string& text) {
  if (before_backward_s(model) <= kLongestTime_s) return;
  throw io::InputError(fmt::format(
      "{} must leave a step of {} micro-steps at most {:g}s before its last backward, got {}",
      option, model.micro_steps, kLongestTime_s, io::quote(text)));
}

/// Sets ready times from 0 to `length_s`: each gradient is ready its share of `length_s` after the
/// previous one.
template <typename Amount>
void spread_over(Model& model, double length_s, Amount amount) {
  const std::size_t count = model.gradients.size();
  const auto at = [&](std::size_t step) -> Gradient& {
    return model.gradients[model.in_backward_order ? step : count - 1 - step];
  };
  double total = 0;
  for (const Gradient& gradient : model.gradients) total += amount(gradient);
  double done = 0;
  for (std::size_t step = 0; step < count; ++step) {
    done += amount(at(step));
    at(step).ready_s = length_s * (done / total);
  }
  wait_for_buckets(model);
}

/// Sets ready times; returns a sentence on how.
std::string spread_backward(Model& model, double length_s) {
  const bool has_flops = std::all_of(model.gradients.begin(), model.gradients.end(),
                                     [](const Gradient& gradient) { return gradient.flops > 0; });
  if (has_flops) {
    spread_over(model, length_s, [](const Gradient& gradient) { return gradient.flops; });
  } else {
    spread_over(model, length_s,
                [](const Gradient& gradient) { return static_cast<double>(gradient.elements); });
  }
  return fmt::format(
      "no ready times are given: backward of {} is spread over the gradients in proportion to "
      "their {}, the {} gradient first",
      io::format_duration(length_s), has_flops ? "FLOPs" : "elements",
      model.in_backward_order ? "first" : "last");
}

void scale_ready(Model& model, double factor) {
  for (Gradient& gradient : model.gradients) gradient.ready_s *= factor;
}

/// Scales all forward and backward passes of a step to `compute_s` in total.
std::vector<std::string> apply_compute_time(double compute_s, bool forward_given, Model& model) {
  std::vector<std::string> diagnostics;
  const double timed_s = backward_s(model);
  const double passes = model.micro_steps;
  if (!forward_given && model.forward_s + model.optimizer_s == 0) {
    model.forward_s = compute_s * kShareOfForward / passes;
    diagnostics.push_back(
        fmt::format("forward is assumed to be a third of `compute_time`, {}, since backward has "
                    "twice its FLOPs; `forward` changes that",
                    io::format_duration(model.forward_s)));
  } else if (!forward_given && timed_s > 0) {
    const double factor = compute_s / (before_backward_s(model) + timed_s);
    model.forward_s *= factor;
    model.optimizer_s *= factor;
  }
  const double forward_s = model.forward_s * passes + model.optimizer_s;
  const double length_s = (compute_s - forward_s) / passes;
  if (length_s <= 0) {
    throw io::InputError(
        fmt::format("`compute_time` covers forward and backward together, so it must be more than "
                    "forward, {}, got {}",
                    io::format_duration(forward_s), io::format_duration(compute_s)));
  }
  if (timed_s == 0) {
    diagnostics.push_back(spread_backward(model, length_s));
  } else {
    scale_ready(model, length_s / timed_s);
    diagnostics.push_back(
        fmt::format("the model's ready times are scaled from {} to {} of backward",
                    io::format_duration(timed_s), io::format_duration(length_s)));
  }
  return diagnostics;
}

double share_of(std::string text, std::string_view option) {
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  const double share = io::parse_number(text, option) / (percent ? 100 : 1);
  if (share > 0 && share <= 1) return share;
  throw io::InputError(
      fmt::format("{} must be a share of the peak, such as 45%, got {}", option, io::quote(text)));
}

/// Throws InputError for options of the job without `batch`, as they would have no effect.
void refuse_without_batch(const TimeOptions& options) {
  const auto refuse = [](const char* field, bool given) {
    if (!given) return;
    throw io::InputError(
        fmt::format("`{}` needs a job whose computation is derived: add `batch`, the sequences or "
                    "images of a GPU and micro-step, or leave it out",
                    field));
  };
  refuse("seq", options.seq > 0);
  refuse("dtype", !options.dtype.empty());
  refuse("checkpoint", !options.checkpoint.empty());
  refuse("micro_steps", options.micro_steps > 0);
  refuse("mfu", !options.mfu.empty());
  refuse("tokens_per_s", options.tokens_per_s > 0);
  refuse("per_gradient", !options.per_gradient.empty());
}

std::vector<std::string> derive(const TimeOptions& options, Model& model) {
  if (!options.rates) {
    throw io::InputError(
        "`batch`: computation is derived from a machine's rates: name a `machine`, such as "
        "p5.48xlarge, or give `compute_time` instead");
  }
  if (!options.mfu.empty() && options.tokens_per_s > 0) {
    throw io::InputError("`mfu` and `tokens_per_s` both set the speed: leave one of them out");
  }
  Job job = {.batch = static_cast<double>(options.batch),
             .positions = static_cast<double>(options.seq)};
  if (!options.dtype.empty()) job.dtype = options.dtype;
  if (!options.checkpoint.empty()) job.checkpoint = options.checkpoint;
  if (options.micro_steps > 0) job.micro_steps = static_cast<int>(options.micro_steps);
  if (!options.mfu.empty()) job.mfu = share_of(options.mfu, "`mfu`");
  job.units_per_s = options.tokens_per_s;
  // A sharded job has no buckets.
  job.per_gradient_s = options.rates->shards > 1 ? 0 : kOwnTime_s;
  if (!options.per_gradient.empty()) {
    job.per_gradient_s = duration_of(options.per_gradient, "`per_gradient`");
  }
  std::vector<std::string> said = compute(job, *options.rates, model);
  require_possible(model, "`batch`", std::to_string(options.batch));
  return said;
}

}  // namespace

std::vector<std::string> apply(const TimeOptions& options, Model& model) {
  std::vector<std::string> derived;
  if (options.batch > 0) {
    derived = derive(options, model);
  } else {
    refuse_without_batch(options);
    if (options.rates && options.compute_time.empty() && backward_s(model) == 0) {
      derived.push_back(
          fmt::format("{} has no times: `batch`, with `seq` and `dtype`, derives them from the "
                      "rates of {}; `compute_time` gives them",
                      model.name, options.rates->name));
    }
  }
  if (!options.forward.empty()) {
    model.forward_s = duration_of(options.forward, "`forward`");
    if (model.micro_steps == 1) model.optimizer_s = 0;
    require_possible(model, "`forward`", options.forward);
  }
  if (options.compute_time.empty()) return derived;
  const double compute_s = duration_of(options.compute_time, "`compute_time`");
  return apply_compute_time(compute_s, !options.forward.empty(), model);
}

MissingTimes missing_times(const Model& model) {
  if (backward_s(model) == 0) return MissingTimes::kReady;
  if (model.forward_s + model.optimizer_s == 0) return MissingTimes::kForward;
  return MissingTimes::kNone;
}

}  // namespace hipress::models
