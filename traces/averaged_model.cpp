#include "traces/averaged_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "io/error.hpp"
#include "traces/job_communication.hpp"
#include "traces/model_parts.hpp"
#include "traces/tensors.hpp"
#include "traces/whole_steps.hpp"

namespace hipress::traces {
namespace {

/// Reports the gradients that the model leaves out, and why.
void say_of_inputs(const TracedStep& step, std::vector<std::string>& diagnostics) {
  if (step.of_inputs.empty()) return;
  const std::size_t count = step.of_inputs.size();
  const std::string what =
      fmt::format("{} gradient{} of {}, of {} elements, {}", count, count == 1 ? "" : "s",
                  step.name, *total_of(step.of_inputs), count == 1 ? "is" : "are");
  constexpr std::string_view kInputs = "(saliency, adversarial training, gradient penalties)";
  diagnostics.push_back(
      step.buckets.empty()
          ? fmt::format(
                "{} of inputs {}, not of parameters, since no optimizer updates a tensor of "
                "that size: the model leaves {} out",
                what, kInputs, count == 1 ? "it" : "them")
          : fmt::format("{} in no bucket, and of inputs {} or of parameters that the job does not "
                        "average: the model leaves {} out",
                        what, kInputs, count == 1 ? "it" : "them"));
}

/// Step with the most gradients.
const TracedStep& fullest(const Imported& trace) {
  return *std::ranges::max_element(trace.steps, {}, [](const TracedStep& step) {
    return std::tuple(step.gradients.size(), step.other_all_reduces.size(), step.returned);
  });
}

/// Chooses the parts that become the model's gradients: gradients if all have sizes, else buckets,
/// else all-reduces if the options allow that.
const PartsRow& choose_parts(const Imported& trace, const TracedStep& step,
                             const ImportOptions& options, std::vector<std::string>& diagnostics) {
  if (total_of(step.gradients)) return kGradients;
  if (total_of(step.buckets)) {
    diagnostics.push_back(fmt::format(
        "the gradients of the model are the {} buckets of DDP, not the {} gradients in them, "
        "whose sizes the trace does not tell{}",
        step.buckets.size(), step.gradients.size(),
        trace.has_times() ? ": record with record_shapes=True" : ""));
    return kBuckets;
  }
  if (options.every_all_reduce && total_of(step.other_all_reduces)) {
    if (trace.sparse_operator.empty()) return kAllReduces;
    throw io::Unmet(
        fmt::format("no model: {} makes a sparse gradient, and the trace does not tell which "
                    "all-reduce carries it; only dense gradients are planned: trace the job with "
                    "sparse=False in its embeddings",
                    trace.sparse_operator));
  }
  refuse_sizes(trace, step);
}

/// Adds a model gradient for each part. Sets `has_times` to false if a ready time is missing.
void add_gradients(const Steps& steps, const PartsRow& row, models::Model& model, bool& has_times) {
  const auto& parts = steps.back()->*row.parts;
  for (std::size_t g = 0; g < parts.size(); ++g) {
    models::Gradient gradient;
    gradient.name = fmt::format("{}{}", row.name, g);
    gradient.elements = parts[g].elements;
    gradient.shape = parts[g].shape;
    gradient.dtype = dtype_named(parts[g].dtype, gradient.name);
    const auto ready =
        median_of(steps, [&](const TracedStep& step) { return (step.*row.parts)[g].ready_s; });
    has_times = has_times && ready.has_value();
    gradient.ready_s = ready.value_or(0);
    check_time(gradient.ready_s, gradient.name);
    model.gradients.push_back(std::move(gradient));
  }
}

/// Type of all parts; empty if they differ.
std::string common_dtype(const std::vector<TracedGradient>& parts) {
  const bool same = std::ranges::all_of(
      parts, [&](const TracedGradient& one) { return one.dtype == parts.front().dtype; });
  return parts.empty() || !same ? "" : parts.front().dtype;
}

/// Gives the model's gradients type float32 if the job averages them in float32.
void widen(const TracedStep& step, models::Model& model, std::vector<std::string>& diagnostics) {
  const std::string sent = common_dtype(step.carriers());
  if (sent != models::to_string(models::Dtype::kFloat32)) return;
  std::size_t count = 0;
  for (models::Gradient& gradient : model.gradients) {
    count += gradient.dtype != models::Dtype::kFloat32 ? 1 : 0;
    gradient.dtype = models::Dtype::kFloat32;
  }
  if (count == 0) return;
  diagnostics.push_back(fmt::format(
      "{} of {} gradients have half precision and are averaged in float32: the model's are float32",
      count, model.gradients.size()));
}

/// Bytes of the collectives that carry gradients; empty if sizes or types are unknown.
std::optional<std::int64_t> sent_bytes(const TracedStep& step) {
  std::int64_t bytes = 0;
  if (!total_of(step.carriers())) return std::nullopt;
  for (const TracedGradient& one : step.carriers()) {
    const std::int64_t each = bytes_of_type(one.dtype);
    if (each == 0 || one.assumed) return std::nullopt;
    bytes += each * one.elements;
  }
  return bytes;
}

StepAccount account_of(const TracedStep& step, Parts parts) {
  StepAccount account{.name = step.name,
                      .passes = step.micro_steps,
                      .step_s = step.length_s,
                      .forward_s = step.forward_s,
                      .exposed_s = step.modelled_exposed_s,
                      .shown_s = shown_s(step),
                      .sent_bytes = sent_bytes(step),
                      .synchronises = !step.carriers().empty()};
  for (const TracedGradient& one : step.*parts) {
    if (one.ready_s) {
      account.backward_s = std::max(account.backward_s.value_or(0), *one.ready_s);
    }
  }
  return account;
}

JobAccount account_of(const Imported& trace, const Steps& steps, Parts parts,
                      const models::Model& model) {
  JobAccount job{.job_ranks = trace.world_size, .model_bytes = bytes_of(model)};
  for (const TracedStep* step : steps) job.steps.push_back(account_of(*step, parts));
  const TracedStep& last = *steps.back();
  std::map<std::int64_t, std::int64_t> elements;  // elements by number of ranks
  for (const TracedGradient& one : last.carriers()) {
    if (one.ranks) elements[*one.ranks] += one.elements;
  }
  for (const auto& [ranks, of_group] : elements) {
    job.group_sizes.push_back(ranks);
    if (!job.ranks || of_group >= elements[*job.ranks]) job.ranks = ranks;
  }
  job.dtype = models::to_string(model.gradients.front().dtype);
  job.sent_dtype = common_dtype(last.carriers());
  if (job.sent_dtype.empty()) job.sent_dtype = job.dtype;
  return job;
}

/// Sets the types in which gradients are averaged. Reports types that are assumed.
void add_types(const TracedStep& last, const PartsRow& row, models::Model& model,
               std::vector<std::string>& of_model) {
  if (row.parts == kGradients.parts) widen(last, model, of_model);
  if (row.parts == kBuckets.parts && model.gradients.front().dtype != models::Dtype::kFloat32) {
    of_model.push_back(fmt::format(
        "the trace does not tell the types of gradients: they travel in {}, and may be float32 "
        "that a hook (fp16_compress_hook) sends in half precision; record with record_shapes=True",
        models::to_string(model.gradients.front().dtype)));
  }
  if (std::ranges::any_of(last.*row.parts, &TracedGradient::assumed)) {
    of_model.emplace_back(
        "the trace does not tell the types of all-reduces, which are taken to be float32");
  }
}

/// Adds the forward time. If it or ready times are missing, removes all times and returns false.
bool add_forward(const Steps& steps, bool has_times, models::Model& model,
                 std::vector<std::string>& of_model) {
  model.micro_steps = steps.back()->micro_steps;
  if (model.micro_steps > 1) {
    of_model.push_back(
        fmt::format("a step is {} micro-steps, of which the last is synchronised; forward and "
                    "ready times are those of one",
                    model.micro_steps));
  }
  const auto forward = median_of(steps, [](const TracedStep& step) { return step.forward_s; });
  if (has_times && forward) {
    model.forward_s = std::max(0.0, *forward);
    return true;
  }
  for (models::Gradient& gradient : model.gradients) gradient.ready_s = 0;
  of_model.emplace_back("the model has no times: give hipress-plan and hipress-sim `compute_time`");
  return false;
}

/// Adds the optimizer's time and a description of the traced steps.
void add_rest(const Steps& steps, bool has_times, ImportedModel& imported,
              std::vector<std::string>& of_model) {
  models::Model& model = imported.model;
  if (has_times) {
    const auto rest = optimizer_s(model, steps);
    model.optimizer_s = rest.value_or(0);
    if (!rest) {
      of_model.emplace_back(
          "the trace does not tell the optimizer's time, nor when the last gradient is averaged");
    }
  }
  check_time(model.forward_s + model.optimizer_s, "forward with the optimizer");
  imported.traced = traced_of(steps);
  if (imported.traced) check_time(imported.traced->step_s, "a step");
}

/// Takes over the totals of a step's collectives: those of gradients, and all others.
void add_collectives(const TracedStep& step, ImportedModel& imported) {
  imported.averages = step.averages;
  if (imported.averages.count == 0) {
    imported.averages = {.count = static_cast<std::int64_t>(step.carriers().size()),
                         .bytes = sent_bytes(step).value_or(0)};
  }
  imported.other = step.other;
}

}  // namespace

ImportedModel averaged_model(const Imported& trace, const std::string& name,
                             const ImportOptions& options, std::vector<std::string>& diagnostics,
                             std::vector<std::string>& of_model) {
  for (const TracedStep& step : trace.steps) {
    if (!step.no_gradients.empty()) refuse_sizes(trace, step);
  }
  const Steps whole = whole_steps(trace, options, diagnostics);
  if (whole.empty()) refuse_sizes(trace, fullest(trace));
  for (const TracedStep* step : whole) refuse_sparse(*step);
  const TracedStep& last = *whole.back();
  say_of_inputs(last, of_model);
  check_communication(trace, last, diagnostics, of_model);
  check_carried(last);
  const PartsRow& row = choose_parts(trace, last, options, of_model);
  check_conserved(whole, row.parts, row.plural);
  const Steps steps = alike_last(whole, row.parts, diagnostics);
  ImportedModel imported{.model = {.name = name, .source = source_of(trace)}, .traced = {}};
  models::Model& model = imported.model;
  bool has_times = true;
  add_gradients(steps, row, model, has_times);
  add_types(last, row, model, of_model);
  has_times = add_forward(steps, has_times, model, of_model);
  imported.account = account_of(trace, steps, row.parts, model);
  check_accounts(imported.account, of_model);
  add_collectives(last, imported);
  add_rest(steps, has_times, imported, of_model);
  say_others(imported.account.steps.back(), last.other, imported.traced, of_model);
  of_model.push_back(fmt::format("names: PyTorch records none, so the model's are {0}0 to {0}{1}",
                                 row.name, model.gradients.size() - 1));
  add_mix(trace, model, of_model);
  say_left_out(trace, of_model);
  return imported;
}

}  // namespace hipress::traces
