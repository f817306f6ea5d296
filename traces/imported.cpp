#include "traces/imported.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <tuple>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "models/shape.hpp"
#include "traces/accounting.hpp"
#include "traces/communication.hpp"
#include "traces/intervals.hpp"
#include "traces/low_rank.hpp"
#include "traces/sharded_steps.hpp"

namespace hipress::traces {
namespace {

using Parts = std::vector<TracedGradient> TracedStep::*;
using Steps = std::vector<const TracedStep*>;

/// Throws io::Unmet unless all steps have as many elements.
void check_conserved(const Steps& steps, Parts parts, std::string_view what) {
  const TracedStep* first = nullptr;
  for (const TracedStep* step : steps) {
    const auto total = total_of(step->*parts);
    if (!total) {
      throw io::Unmet(fmt::format(
          "no model: {} has {} {}, of which not all have sizes; leave out steps that are cut off "
          "(schedule of the profiler)",
          step->name, (step->*parts).size(), what));
    }
    if (first == nullptr) first = step;
    if (*total == *total_of(first->*parts)) continue;
    throw io::Unmet(fmt::format(
        "no model: elements are not conserved: the {} of {} have {} elements, those of {} {}; "
        "leave out steps that differ (schedule of the profiler), and trace one model alone where "
        "several are trained in turn",
        what, first->name, *total_of(first->*parts), step->name, *total));
  }
}

models::Dtype dtype_named(const std::string& name, const std::string& gradient) {
  for (const models::Dtype dtype :
       {models::Dtype::kFloat32, models::Dtype::kFloat16, models::Dtype::kBfloat16}) {
    if (name == models::to_string(dtype)) return dtype;
  }
  throw io::Unmet(
      fmt::format("no model: {} is of type {}; float32, float16 and bfloat16 are planned", gradient,
                  name.empty() ? "that the trace does not tell" : io::quote(name)));
}

/// The median over steps, if all of them tell.
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

/// Throws io::Unmet for a time that no model can have.
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

/// What of a step the model's gradients are, and how they are called.
struct PartsRow {
  Parts parts;
  const char* name;    ///< of one, before its number
  const char* plural;  ///< in messages
};
constexpr PartsRow kGradients{&TracedStep::gradients, "gradient", "gradients"};
constexpr PartsRow kBuckets{&TracedStep::buckets, "bucket", "buckets"};
constexpr PartsRow kAllReduces{&TracedStep::other_all_reduces, "bucket", "all-reduces"};

/// "2 all-gathers (2MiB), 1 barrier".
std::string described(const std::vector<HeldCollectives>& held) {
  std::vector<std::string> parts;
  for (const HeldCollectives& one : held) {
    parts.push_back(
        fmt::format("{} {}{}{}", one.count, one.kind, one.count == 1 ? "" : "s",
                    one.bytes > 0 ? fmt::format(" ({})", io::format_size(one.bytes)) : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_all_reduce(const HeldCollectives& one) {
  return one.kind == text_of(CollectiveKind::kAllReduce);
}

/// Says which collectives of an execution trace are not in its model.
void say_left_out(const Imported& trace, std::vector<std::string>& diagnostics) {
  std::vector<HeldCollectives> others = trace.held;
  std::erase_if(others, is_all_reduce);
  if (others.empty()) return;
  diagnostics.push_back(
      fmt::format("the model leaves out what the job communicates besides "
                  "all-reduces: {}",
                  described(others)));
}

/// Refuses a generated trace without an all-reduce.
[[noreturn]] void refuse_generated(const Imported& trace) {
  const auto holds = [&](CollectiveKind kind) {
    return std::ranges::find(trace.held, text_of(kind), &HeldCollectives::kind) != trace.held.end();
  };
  const bool sharded = holds(CollectiveKind::kAllGather) && holds(CollectiveKind::kReduceScatter);
  throw io::Unmet(fmt::format(
      "no model: the trace is a generator's, not PyTorch's, and holds {}, but no all-reduce; {}",
      described(trace.held),
      sharded ? "as the collectives of a sharded job they have no names that tell layers: write "
                "its layers into a model YAML (key 'layer' of gradients), which hipress-plan takes "
                "with `schedule` fsdp"
              : "gradients are averaged by all-reduces: give hipress-plan a list of the job's "
                "gradients, lines name,elements, as `input`"));
}

/// Refuses a step with sparse gradients, since the model's are dense.
void refuse_sparse(const TracedStep& step) {
  std::vector<std::size_t> sparse;
  for (std::size_t g = 0; g < step.gradients.size(); ++g) {
    if (step.gradients[g].sparse) sparse.push_back(g);
  }
  if (sparse.empty()) return;
  const TracedGradient& gradient = step.gradients[sparse.front()];
  const SparseSize& size = *gradient.sparse;
  const std::string travels =
      size.values > 0
          ? fmt::format(
                ": {} values and {} indices travel{}", size.values, size.indices,
                gradient.elements > 0 ? fmt::format(", not {} elements", gradient.elements) : "")
          : "";
  throw io::Unmet(fmt::format(
      "no model: gradient{} of {} is sparse{}{}, and only dense gradients are planned; trace the "
      "job with sparse=False in its embeddings",
      sparse.front(), step.name,
      sparse.size() > 1 ? fmt::format(", as {} others are", sparse.size() - 1) : "", travels));
}

/// Says which gradients the model leaves out, and why.
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

/// Why a trace has no sizes that could be the model's.
[[noreturn]] void refuse_sizes(const Imported& trace, const TracedStep& step) {
  if (!step.gradients.empty()) {
    const auto has_size = [](const TracedGradient& one) { return one.elements > 0; };
    const auto told = std::ranges::count_if(step.gradients, has_size);
    if (told > 0) {
      throw io::Unmet(fmt::format(
          "no model: the trace tells the sizes of {} of the {} gradients of {}: the others have no "
          "elements, or no dimensions that a model can have",
          told, step.gradients.size(), step.name));
    }
    throw io::Unmet(fmt::format(
        "no model: the trace tells the sizes of neither the {} gradients of {} (record with "
        "record_shapes=True) nor of the {} collectives that they start ('In msg nelems', from "
        "PyTorch 2 on with NCCL)",
        step.gradients.size(), step.name, step.buckets.size()));
  }
  if (!step.no_gradients.empty()) throw io::Unmet("no model: not told are " + step.no_gradients);
  if (!step.other_all_reduces.empty()) {
    if (total_of(step.other_all_reduces)) {
      throw io::Unmet(fmt::format(
          "no model: {} has no AccumulateGrad, so nothing says which of its {} all-reduces carry "
          "gradients; if all of them do, say `every_all_reduce`",
          step.name, step.other_all_reduces.size()));
    }
    throw io::Unmet(fmt::format(
        "no model: {} has no AccumulateGrad, and of its {} all-reduces not all have sizes",
        step.name, step.other_all_reduces.size()));
  }
  if (step.returned > 0) {
    throw io::Unmet(fmt::format(
        "no model: torch.autograd.grad() returns the {} gradients of {}, and a trace has no sizes "
        "of these; trace a job that calls backward()",
        step.returned, step.name));
  }
  if (trace.is_generated) refuse_generated(trace);
  throw io::Unmet(fmt::format(
      "no model: none of the {} steps has an AccumulateGrad or an all-reduce ({} events, {}), so "
      "nothing says what the gradients are: {}",
      trace.steps.size(), trace.events,
      trace.held.empty() ? fmt::format("{} collectives in {}", step.collectives, step.name)
                         : described(trace.held),
      trace.has_times() ? "trace backward, on the CPU too (ProfilerActivity.CPU)"
                        : "record all of a training step, its backward pass, too"));
}

/// The step that has most to say.
const TracedStep& fullest(const Imported& trace) {
  return *std::ranges::max_element(trace.steps, {}, [](const TracedStep& step) {
    return std::tuple(step.gradients.size(), step.other_all_reduces.size(), step.returned);
  });
}

/// The gradients if all have sizes, else the buckets, else what the options allow.
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
    throw io::Unmet(fmt::format(
        "no model: {} makes a sparse gradient, and nothing says which all-reduce carries it; only "
        "dense gradients are planned: trace the job with sparse=False in its embeddings",
        trace.sparse_operator));
  }
  refuse_sizes(trace, step);
}

/// What a step shows of its gradients, if anything.
bool has_parts(const TracedStep& step, const ImportOptions& options) {
  return !step.gradients.empty() || !step.buckets.empty() ||
         (options.every_all_reduce && !step.other_all_reduces.empty());
}

/// How many gradients or else buckets a step has.
std::size_t count_of(const TracedStep& step) {
  return step.gradients.empty() ? step.buckets.size() : step.gradients.size();
}

/// The steps that are whole: those without backward are left out, and at the trace's ends those
/// with a part of the gradients of the others.
Steps whole_steps(const Imported& trace, const ImportOptions& options,
                  std::vector<std::string>& diagnostics) {
  Steps steps;
  for (const TracedStep& step : trace.steps) {
    if (has_parts(step, options)) {
      steps.push_back(&step);
    }
  }
  if (steps.empty()) return steps;
  std::vector<std::string> empty;
  for (const TracedStep& step : trace.steps) {
    if (!has_parts(step, options)) empty.push_back(step.name);
  }
  if (!empty.empty()) {
    diagnostics.push_back(fmt::format(
        "{}{} left out: no gradient is in {}, as in the profiler's last step where training ends "
        "before its schedule does",
        empty.front(), empty.size() > 1 ? fmt::format(" and {} more are", empty.size() - 1) : " is",
        empty.size() > 1 ? "them" : "it"));
  }
  std::size_t most = 0;
  for (const TracedStep* step : steps) most = std::max(most, count_of(*step));
  const auto leave_out = [&](const TracedStep& step) {
    diagnostics.push_back(fmt::format("{} is left out: it is cut off, with {} of {} gradients",
                                      step.name, count_of(step), most));
  };
  if (steps.size() > 2 && count_of(*steps.back()) < most) {
    leave_out(*steps.back());
    steps.pop_back();
  }
  if (steps.size() > 2 && count_of(*steps.front()) < most) {
    leave_out(*steps.front());
    steps.erase(steps.begin());
  }
  return steps;
}

/// Steps with the last one's layout.
Steps alike_last(const Steps& steps, Parts parts, std::vector<std::string>& diagnostics) {
  Steps alike;
  for (const TracedStep* step : steps) {
    if (same_layout(step->*parts, steps.back()->*parts) &&
        step->micro_steps == steps.back()->micro_steps) {
      alike.push_back(step);
    }
  }
  if (alike.size() < steps.size()) {
    diagnostics.push_back(fmt::format(
        "{} of the {} steps have other gradients, buckets or micro-steps than the last, or another "
        "order, and are left out of the medians",
        steps.size() - alike.size(), steps.size()));
  }
  return alike;
}

/// Share of the gradients' elements below which data may be a norm, a metric or a buffer.
constexpr double kSmall = 0.01;

/// Whether a step gathers all parameters, as ZeRO-1 and -2 do behind their optimizers; of DDP's
/// gradients some may then be reduced behind backward.
bool gathers_parameters(const TracedStep& step) {
  const auto elements = std::max(total_of(step.gradients), step.collective_elements());
  if (!elements || step.gathered_elements == 0) return false;
  const auto all = static_cast<double>(*elements);
  return std::abs(static_cast<double>(step.gathered_elements) - all) <= kSmall * all;
}

/// What the ranks of a job do with gradients: throws io::Unmet where these travel otherwise than by
/// all-reduce.
void check_communication(const Imported& trace, const Steps& steps,
                         std::vector<std::string>& diagnostics) {
  if (trace.world_size.value_or(1) <= 1) return;
  const TracedStep& last = *steps.back();
  if (!last.buckets.empty()) {
    if (gathers_parameters(last)) {
      diagnostics.push_back(fmt::format(
          "{} also gathers {} elements, all parameters (ZeRO-1, -2): the model averages gradients "
          "alone; with hipress-plan `schedule` fsdp it gathers, too",
          last.name, last.gathered_elements));
    }
    return;
  }
  if (last.reduce_scatters > 0) {
    throw io::Unmet(fmt::format(
        "no model: the job is sharded (FSDP, ZeRO): {} has {} reduce-scatters and no all-reduce of "
        "gradients among {} ranks, and only gradients that travel by all-reduce are planned",
        last.name, last.reduce_scatters, *trace.world_size));
  }
  if (!last.travels.empty()) {
    throw io::Unmet(fmt::format(
        "no model: gradients of {} travel by {}, and only all-reduces and what FSDP and ZeRO-3 do "
        "are read (ZeRO-1 and -2 may reduce each bucket to its owner or by all-to-alls)",
        last.name, io::quote(last.travels)));
  }
  const auto elements = total_of(last.gradients);
  const bool is_all = elements && last.behind_elements >= kSmall * static_cast<double>(*elements);
  if (last.late_buckets.empty() && is_all) {
    throw io::Unmet(fmt::format(
        "no model: no gradient of {} starts an all-reduce, and no all-reduces behind backward have "
        "its {} elements, but {} elements travel there, most of them by {}: gradients are averaged "
        "otherwise (ZeRO by reductions or all-to-alls, 1-bit optimizers)",
        last.name, *elements, last.behind_elements, io::quote(last.behind)));
  }
  if (last.collectives == 0) {
    diagnostics.push_back(
        fmt::format("the job has {} ranks, and {} no communication: no kernel and no operator of "
                    "it is known as a collective",
                    *trace.world_size, last.name));
  } else if (!last.gradients.empty()) {
    diagnostics.push_back(fmt::format(
        "no gradient of {} starts an all-reduce, as they do in DDP: its {} collectives are started "
        "elsewhere{}",
        last.name, last.collectives,
        last.late_buckets.empty()
            ? ""
            : fmt::format(", and {} of them carry the gradients", last.late_buckets.size())));
  }
}

/// Gradients with sizes and, if all are told, ready times.
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

/// Makes the model's gradients float32 if they are averaged in float32.
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

/// Bytes of the collectives that carry gradients; empty if sizes or types are not told.
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

std::int64_t bytes_of(const models::Model& model) {
  std::int64_t bytes = 0;
  for (const models::Gradient& gradient : model.gradients) {
    bytes += gradient.elements * static_cast<std::int64_t>(models::size_of(gradient.dtype));
  }
  return bytes;
}

/// GPU time; empty if the trace does not tell.
std::optional<double> shown_s(const TracedStep& step) {
  if (!step.compute_s || !step.exposed_communication_s || !step.idle_s) return std::nullopt;
  return *step.compute_s + *step.exposed_communication_s + *step.idle_s;
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
  std::map<std::int64_t, std::int64_t> elements;  // by ranks
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

/// Rest of a step by the model's medians, or else the optimizers' part of it.
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

/// Explains why buckets with `elements` elements have fewer than the gradients that they carry.
std::string why_fewer(const TracedStep& step, std::int64_t elements) {
  const char* const remedy =
      ": the job sends factors of low rank; trace it without that hook for a model of its "
      "gradients";
  std::vector<std::vector<std::int64_t>> shapes;
  for (const TracedGradient& one : step.gradients) shapes.push_back(one.shape);
  const auto rank = powersgd_rank(shapes, elements);
  if (rank > 0) return fmt::format(", as many as PowerSGD of rank {} sends{}", *rank, remedy);
  if (rank || step.factorises) {
    return fmt::format(", as where PowerSGD's factors travel beside them{}", remedy);
  }
  if (!step.travels.empty()) return fmt::format(": others travel by {}", io::quote(step.travels));
  return ": a hook sends something smaller than gradients (factors of low rank as PowerSGD, a part "
         "of them); trace the job without it";
}

/// Throws io::Unmet if buckets have other numbers of elements than the gradients that they carry.
void check_carried(const TracedStep& step) {
  const auto gradients = total_of(step.gradients), buckets = total_of(step.buckets);
  if (!gradients && step.factorises) {
    throw io::Unmet(fmt::format(
        "no model: hooks multiply matrices where gradients of {} are accumulated, as PowerSGD's "
        "do, so that its {} all-reduces carry factors of low rank; trace the job without that hook",
        step.name, step.buckets.size()));
  }
  if (!gradients || !buckets || *gradients == *buckets || gathers_parameters(step)) return;
  throw io::Unmet(fmt::format(
      "no model: elements are not conserved: the gradients of {} have {} elements, the buckets "
      "that "
      "carry them {}{}",
      step.name, *gradients, *buckets, *buckets < *gradients ? why_fewer(step, *buckets) : ""));
}

/// Reports other communication, which no plan changes, if its bytes or its exposed time matter.
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

/// How each step is sharded; none of them: the job is not.
std::vector<NamedSharding> shardings_of(const Imported& trace) {
  std::vector<NamedSharding> steps;
  for (const TracedStep& step : trace.steps) {
    steps.push_back({step.name, step.sharded ? sharding_of(*step.sharded) : std::nullopt});
  }
  const bool any = std::ranges::any_of(
      steps, [](const NamedSharding& step) { return step.sharding.has_value(); });
  return any ? steps : std::vector<NamedSharding>();
}

/// The type that a layer is reduced in, as its parameters'.
models::Dtype dtype_of(const ShardedLayer& layer) {
  return dtype_named(layer.reduced_dtype.empty() ? models::to_string(models::Dtype::kFloat32)
                                                 : layer.reduced_dtype,
                     layer.name);
}

void add_layer(const ShardedLayer& layer, models::Model& model) {
  models::Gradient gradient{.name = layer.name,
                            .elements = layer.elements,
                            .ready_s = layer.ready_s.value_or(0),
                            .dtype = dtype_of(layer),
                            .layer = layer.name};
  check_time(gradient.ready_s, layer.name);
  if (layer.gradients.empty()) model.gradients.push_back(gradient);
  for (std::size_t g = 0; g < layer.gradients.size(); ++g) {
    if (layer.gradients.size() > 1) gradient.name = fmt::format("{}.gradient{}", layer.name, g);
    gradient.shape = layer.gradients[g];
    gradient.elements = models::elements_of(gradient.shape);
    model.gradients.push_back(gradient);
  }
}

std::int64_t ranks_of(const Sharding& sharding) {
  return sharding.ranks * std::max<std::int64_t>(1, sharding.replicas);
}

/// True if its types are those of the baselines that gather in bfloat16 and reduce in float32.
bool is_mixed(const ShardedLayer& layer) {
  return layer.gathered_dtype == models::to_string(models::Dtype::kBfloat16) &&
         layer.reduced_dtype == models::to_string(models::Dtype::kFloat32);
}

/// What is true of a sharded job and not of its model.
void say_assumed(const Sharding& sharding, std::vector<std::string>& diagnostics) {
  const ShardedLayer& layer = sharding.layers.front();
  if (layer.reduced_dtype.empty()) {
    diagnostics.emplace_back("types of reductions are not told, and taken for float32");
  } else if (!layer.gathered_dtype.empty() && layer.gathered_dtype != layer.reduced_dtype) {
    diagnostics.push_back(fmt::format(
        "parameters are gathered in {} and gradients reduced in {}: the model has the latter{}",
        layer.gathered_dtype, layer.reduced_dtype,
        is_mixed(layer) ? "; of the baselines of hipress-plan, fsdp2_mixed and hsdp_mixed gather "
                          "in bf16 and reduce in fp32"
                        : ""));
  }
  if (sharding.passes > 1) {
    diagnostics.push_back(fmt::format(
        "a step is {} micro-steps; forward and ready times are those of one{}{}", sharding.passes,
        sharding.reduces_once ? ". Only the last reduces, and the schedule reduces in all" : "",
        layer.forward_gathers < sharding.passes
            ? fmt::format(". A layer is gathered in {} of them, and the schedule gathers in all",
                          layer.forward_gathers)
            : ""));
  }
  diagnostics.push_back(fmt::format(
      "the job trained with {} on {} ranks: give hipress-plan and hipress-sim `schedule`",
      sharding.schedule, ranks_of(sharding)));
}

std::string source_of(const Imported& trace) {
  return fmt::format("{} of {}{}", trace.format,
                     trace.hardware.empty() ? "unknown hardware" : trace.hardware,
                     trace.world_size ? fmt::format(", {} ranks", *trace.world_size) : "");
}

/// The mix that the kernels' names tell, if they tell enough of it.
void add_mix(const Imported& trace, models::Model& model, std::vector<std::string>& diagnostics) {
  constexpr double kTooMuch = 0.5, kWorthSaying = 0.005;
  constexpr int kDigits = 3;
  if (!trace.mix) return;
  const double missing = trace.mix->unrecognised;
  if (missing <= kTooMuch) model.mix = models::rounded(trace.mix->mix, kDigits);
  if (missing < kWorthSaying) return;
  diagnostics.push_back(fmt::format(
      "kernels of {:.1f} % of the computation's time have names that say no class, most of it {}: "
      "{}",
      100 * missing, io::quote(trace.mix->longest_unrecognised),
      model.mix ? "the mix leaves them out"
                : "the model has no mix; add one by hand (mix: {gemm: 0.6, elementwise: 0.4})"));
}

StepAccount account_of(const TracedStep& step, const Sharding& sharding) {
  StepAccount account{.name = step.name,
                      .passes = sharding.passes,
                      .step_s = step.length_s,
                      .forward_s = sharding.forward_s,
                      .exposed_s = step.modelled_exposed_s,
                      .shown_s = shown_s(step)};
  std::int64_t bytes = 0;
  for (const KindTotal* kind :
       {&sharding.all_gather, &sharding.reduce_scatter, &sharding.all_reduce}) {
    bytes += std::min(INT64_MAX - bytes, kind->bytes);
  }
  account.sent_bytes = bytes;
  for (const ShardedLayer& layer : sharding.layers) {
    if (layer.ready_s) {
      account.backward_s = std::max(account.backward_s.value_or(0), *layer.ready_s);
    }
  }
  return account;
}

/// Bytes that a step of the job's schedule sends for the model, over all groups of shards. Each
/// pass gathers in forward and, unless layers stay whole, in backward. Then it reduces, and
/// averages over replicas.
std::int64_t bytes_with_schedule(const models::Model& model, const Sharding& sharding) {
  const bool stays_whole = sharding.schedule.find("reshard=false") != std::string::npos;
  const int collectives = (stays_whole ? 2 : 3) + (sharding.replicas > 1 ? 1 : 0);
  const std::int64_t times = std::int64_t{collectives} * sharding.passes;
  return bytes_of(model) > INT64_MAX / times ? INT64_MAX : bytes_of(model) * times;
}

/// The model of a sharded job: its layers, in the order in which they are reduced.
ImportedModel sharded_model(const Imported& trace, const std::vector<NamedSharding>& steps,
                            const std::string& name, std::vector<std::string>& diagnostics) {
  const CommonSharding common = common_sharding(steps, diagnostics);
  const Sharding& sharding = common.sharding;
  ImportedModel imported{
      .model = {.name = name, .source = source_of(trace)}, .traced = {}, .sharding = sharding};
  models::Model& model = imported.model;
  for (const ShardedLayer& layer : sharding.layers) add_layer(layer, model);
  model.micro_steps = sharding.passes;
  const bool has_times =
      sharding.forward_s &&
      std::ranges::all_of(sharding.layers, [](auto& layer) { return layer.ready_s.has_value(); });
  if (has_times) {
    model.forward_s = *sharding.forward_s;
  } else {
    for (models::Gradient& gradient : model.gradients) gradient.ready_s = 0;
    diagnostics.emplace_back(
        "the model has no times: give hipress-plan and hipress-sim `compute_time`");
  }
  Steps used;
  JobAccount& job = imported.account;
  job = {.joined = "layers are sharded",
         .job_ranks = trace.world_size,
         .ranks = ranks_of(sharding),
         .schedule = sharding.schedule,
         .model_bytes = bytes_with_schedule(model, sharding)};
  for (const std::size_t i : common.steps) {
    used.push_back(&trace.steps[i]);
    job.steps.push_back(account_of(trace.steps[i], *steps[i].sharding));
  }
  if (has_times)
    model.optimizer_s = optimizer_s(model, used).value_or(sharding.optimizer_s.value_or(0));
  check_time(model.forward_s + model.optimizer_s, "forward with the optimizer");
  imported.traced = traced_of(used);
  if (imported.traced) check_time(imported.traced->step_s, "a step");
  say_assumed(sharding, diagnostics);
  check_accounts(job, diagnostics);
  say_others(job.steps.back(), sharding.other, imported.traced, diagnostics);
  add_mix(trace, model, diagnostics);
  return imported;
}

}  // namespace

std::string short_text(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return io::printable(text.substr(0, kMost));
}

std::optional<std::int64_t> total_of(const std::vector<TracedGradient>& parts) {
  std::int64_t sum = 0;
  for (const TracedGradient& part : parts) {
    if (part.elements <= 0 || part.elements > models::kMaxElements - sum) return std::nullopt;
    sum += part.elements;
  }
  return parts.empty() ? std::nullopt : std::optional(sum);
}

bool same_layout(const std::vector<TracedGradient>& a, const std::vector<TracedGradient>& b) {
  return std::ranges::equal(a, b, [](const TracedGradient& one, const TracedGradient& other) {
    return one.elements == other.elements && one.shape == other.shape;
  });
}

void Imported::tell(std::string sentence) {
  constexpr std::size_t kMost = 8;
  if (not_told.size() > kMost || std::ranges::find(not_told, sentence) != not_told.end()) return;
  not_told.push_back(not_told.size() < kMost ? std::move(sentence) : "and more of the same");
}

std::optional<std::int64_t> TracedStep::collective_elements() const {
  const bool sparse = std::ranges::any_of(
      gradients, [](const TracedGradient& gradient) { return gradient.sparse.has_value(); });
  return sparse ? std::nullopt : total_of(buckets);
}

ImportedModel model_of(const Imported& trace, const std::string& name, const ImportOptions& options,
                       std::vector<std::string>& diagnostics) {
  if (!trace.has_steps || trace.steps.empty()) {
    throw io::Unmet("no model: the trace does not tell where its steps begin");
  }
  if (!trace.problem.empty()) throw io::Unmet("no model: " + trace.problem);
  diagnostics.insert(diagnostics.end(), trace.assumed.begin(), trace.assumed.end());
  const std::vector<NamedSharding> shardings = shardings_of(trace);
  if (!shardings.empty()) return sharded_model(trace, shardings, name, diagnostics);
  for (const TracedStep& step : trace.steps) {
    if (!step.no_gradients.empty()) refuse_sizes(trace, step);
  }
  const Steps whole = whole_steps(trace, options, diagnostics);
  if (whole.empty()) refuse_sizes(trace, fullest(trace));
  for (const TracedStep* step : whole) refuse_sparse(*step);
  say_of_inputs(*whole.back(), diagnostics);
  const TracedStep& last = *whole.back();
  check_communication(trace, whole, diagnostics);
  check_carried(last);
  const PartsRow& row = choose_parts(trace, last, options, diagnostics);
  check_conserved(whole, row.parts, row.plural);
  const Steps steps = alike_last(whole, row.parts, diagnostics);
  ImportedModel imported;
  models::Model& model = imported.model;
  model.name = name;
  model.source = source_of(trace);
  bool has_times = true;
  add_gradients(steps, row, model, has_times);
  if (row.parts == kGradients.parts) widen(last, model, diagnostics);
  if (row.parts == kBuckets.parts && model.gradients.front().dtype != models::Dtype::kFloat32) {
    diagnostics.push_back(fmt::format(
        "the types of gradients are not told: they travel in {}, and may be float32 that a hook "
        "(fp16_compress_hook) sends in half precision; record with record_shapes=True",
        models::to_string(model.gradients.front().dtype)));
  }
  model.micro_steps = last.micro_steps;
  if (model.micro_steps > 1) {
    diagnostics.push_back(
        fmt::format("a step is {} micro-steps, of which the last is synchronised; forward and "
                    "ready times are those of one",
                    model.micro_steps));
  }
  if (std::ranges::any_of(last.*row.parts, &TracedGradient::assumed)) {
    diagnostics.emplace_back("types of all-reduces are not told, and taken for float32");
  }
  const auto forward = median_of(steps, [](const TracedStep& step) { return step.forward_s; });
  if (has_times && forward) {
    model.forward_s = std::max(0.0, *forward);
  } else {
    for (models::Gradient& gradient : model.gradients) gradient.ready_s = 0;
    diagnostics.emplace_back(
        "the model has no times: give hipress-plan and hipress-sim `compute_time`");
  }
  imported.account = account_of(trace, steps, row.parts, model);
  check_accounts(imported.account, diagnostics);
  imported.averages = last.averages;
  if (imported.averages.count == 0) {
    imported.averages = {.count = static_cast<std::int64_t>(last.carriers().size()),
                         .bytes = sent_bytes(last).value_or(0)};
  }
  imported.other = last.other;
  if (has_times && forward) {
    const auto rest = optimizer_s(model, steps);
    model.optimizer_s = rest.value_or(0);
    if (!rest) {
      diagnostics.emplace_back(
          "the optimizer is not told: nothing says when the last gradient is averaged");
    }
  }
  check_time(model.forward_s + model.optimizer_s, "forward with the optimizer");
  imported.traced = traced_of(steps);
  if (imported.traced) check_time(imported.traced->step_s, "a step");
  say_others(imported.account.steps.back(), last.other, imported.traced, diagnostics);
  diagnostics.push_back(
      fmt::format("names: PyTorch records none, so the model's are {0}0 to {0}{1}", row.name,
                  model.gradients.size() - 1));
  add_mix(trace, model, diagnostics);
  say_left_out(trace, diagnostics);
  return imported;
}

}  // namespace hipress::traces
