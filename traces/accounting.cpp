#include "traces/accounting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::traces {
namespace {

constexpr double kRounded = 0.01, kRounded_s = 2e-6;
constexpr double kUneven = 0.05;       // tolerance for steps with unequal passes
constexpr double kBytesDiffer = 0.05;  // tolerance: padding, and parameters too small to be sharded

std::string text(double seconds) { return io::format_duration(seconds); }
std::string bytes(std::int64_t count) { return io::format_amount(count); }

std::optional<double> passes_s(const StepAccount& step) {
  if (!step.forward_s || !step.backward_s) return std::nullopt;
  return step.passes * (*step.forward_s + *step.backward_s);
}

/// Checks that forward, backward and exposed communication together take no longer than their step.
void check_times(const JobAccount& job, std::vector<std::string>& diagnostics) {
  std::string first;
  std::size_t over = 0;
  for (const StepAccount& step : job.steps) {
    if (!step.step_s) continue;
    const double rounded = step.passes > 1 ? kUneven : kRounded;
    const auto check = [&](double sum_s, double may_differ, const std::string& what) {
      if (sum_s <= *step.step_s * (1 + may_differ) + kRounded_s) return;
      throw io::Unmet(fmt::format(
          "no model: times are not conserved: of {}, which takes {}, {} take {}: its events do not "
          "belong to it",
          step.name, text(*step.step_s), what, text(sum_s)));
    };
    check(step.shown_s.value_or(0), kRounded, "computation, exposed communication and idle time");
    const auto passes = passes_s(step);
    if (!passes) continue;
    check(*passes, rounded,
          step.passes > 1 ? fmt::format("forward and backward of {} micro-steps", step.passes)
                          : std::string("forward and backward up to the last gradient"));
    const double sum_s = *passes + step.exposed_s.value_or(0);
    if (sum_s <= *step.step_s * (1 + rounded) + kRounded_s) continue;
    if (over++ == 0) {
      first = fmt::format(
          "of {}, which takes {}, forward and backward take {}, and exposed "
          "communication {}",
          step.name, text(*step.step_s), text(*passes), text(*step.exposed_s));
    }
  }
  if (over == 0) return;
  diagnostics.push_back(fmt::format(
      "{}{}: some of the communication is exposed while backward waits for the CPU, and is in both",
      first, over > 1 ? fmt::format(" (so in {} steps)", over) : ""));
}

/// Sentence about gradients whose type changes when they are sent.
std::string travels_as(const JobAccount& job, std::int64_t sent) {
  const bool is_half = job.sent_dtype == "float16" || job.sent_dtype == "bfloat16";
  return fmt::format(
      "the job already sends its gradients in {}{}: {} a step, and not the {} of its {} gradients. "
      "What it can gain is beyond that{}",
      is_half ? "half precision, " : "", job.sent_dtype, bytes(sent), bytes(*job.model_bytes),
      job.dtype, is_half ? ": baseline ddp_fp16 of hipress-plan sends as much" : "");
}

/// Reports if the model sends more or fewer bytes than the trace.
void check_bytes(const JobAccount& job, std::vector<std::string>& diagnostics) {
  const auto sent = job.steps.back().sent_bytes;
  if (!sent || !job.model_bytes || *sent == 0 || *job.model_bytes == 0) return;
  const auto of_trace = static_cast<double>(*sent);
  const auto of_model = static_cast<double>(*job.model_bytes);
  if (std::abs(of_model - of_trace) <= kBytesDiffer * std::max(of_model, of_trace)) return;
  if (job.schedule.empty() && job.sent_dtype != job.dtype) {
    diagnostics.push_back(travels_as(job, *sent));
    return;
  }
  const bool more = of_model > of_trace;
  diagnostics.push_back(
      fmt::format("the job sends {} in {}, and the model {}{}, {:.1f} times as {}{}", bytes(*sent),
                  job.steps.back().name, bytes(*job.model_bytes),
                  job.schedule.empty() ? "" : fmt::format(" with {}", job.schedule),
                  more ? of_model / of_trace : of_trace / of_model, more ? "much" : "little",
                  job.schedule.empty()
                      ? ""
                      : ": this is the most similar schedule, and none is the same as the job's"));
}

/// Reports ranks of the job that do not average gradients, and groups of different sizes that do.
void check_ranks(const JobAccount& job, std::vector<std::string>& diagnostics) {
  if (job.group_sizes.size() > 1) {
    diagnostics.push_back(fmt::format(
        "{} among {} ranks, each part of them in a group of its own (as experts are): the model "
        "has one number of ranks, {}",
        job.joined, fmt::join(job.group_sizes, " and "), *job.ranks));
  }
  if (!job.ranks || !job.job_ranks || *job.ranks == *job.job_ranks) return;
  diagnostics.push_back(
      fmt::format("{} among {} of the {} ranks; the others compute other parts (tensor, pipeline "
                  "parallelism), whose communication is not in the model: simulate {} nodes",
                  job.joined, *job.ranks, *job.job_ranks, *job.ranks));
}

/// Checks that every step in the medians synchronises, and that all send equally many bytes.
void check_synchronisation(const JobAccount& job, std::vector<std::string>& diagnostics) {
  const auto silent =
      std::ranges::find(job.steps, false, [](const StepAccount& one) { return one.synchronises; });
  const auto sends = std::ranges::find(job.steps, true, &StepAccount::synchronises);
  if (silent != job.steps.end() && sends != job.steps.end()) {
    throw io::Unmet(fmt::format(
        "no model: the gradients of {} are sent, and those of {} are not, which goes backward just "
        "as far; leave out steps that differ (schedule of the profiler)",
        sends->name, silent->name));
  }
  const StepAccount& last = job.steps.back();
  std::size_t others = 0;
  const StepAccount* other = nullptr;
  for (const StepAccount& step : job.steps) {
    if (!step.sent_bytes || !last.sent_bytes || *step.sent_bytes == *last.sent_bytes) continue;
    ++others;
    other = &step;
  }
  if (other == nullptr) return;
  diagnostics.push_back(fmt::format(
      "{} sends {}, and {}{} sends {}", last.name, bytes(*last.sent_bytes), other->name,
      others > 1 ? fmt::format(", as {} more,", others - 1) : "", bytes(*other->sent_bytes)));
}

}  // namespace

std::optional<double> rest_s(const StepAccount& step) {
  const auto passes = passes_s(step);
  if (!step.step_s || !passes || !step.exposed_s) return std::nullopt;
  return std::max(0.0, *step.step_s - *passes - *step.exposed_s);
}

void check_accounts(const JobAccount& job, std::vector<std::string>& diagnostics) {
  if (job.steps.empty()) return;
  check_times(job, diagnostics);
  check_synchronisation(job, diagnostics);
  check_ranks(job, diagnostics);
  check_bytes(job, diagnostics);
}

}  // namespace hipress::traces
