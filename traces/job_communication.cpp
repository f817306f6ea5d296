#include "traces/job_communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "traces/communication.hpp"
#include "traces/low_rank.hpp"

namespace hipress::traces {
namespace {

/// Collectives in words: "2 all-gathers (2MiB), 1 barrier".
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

/// Refuses a workload generator's trace that has no all-reduce.
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

/// True if a step gathers all parameters, as ZeRO-1 and ZeRO-2 do after the optimizer. Such a step
/// may reduce some gradients after backward.
bool gathers_parameters(const TracedStep& step) {
  const auto elements = std::max(total_of(step.gradients), step.collective_elements());
  if (!elements || step.gathered_elements == 0) return false;
  const auto all = static_cast<double>(*elements);
  return std::abs(static_cast<double>(step.gathered_elements) - all) <= kSmall * all;
}

/// Reason why the buckets, with `elements` elements, have fewer elements than the gradients.
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

}  // namespace

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
  if (!step.no_gradients.empty())
    throw io::Unmet("no model: the trace does not tell " + step.no_gradients);
  if (!step.other_all_reduces.empty()) {
    if (total_of(step.other_all_reduces)) {
      throw io::Unmet(
          fmt::format("no model: {} has no AccumulateGrad, so the trace does not tell which of its "
                      "{} all-reduces carry gradients; if all of them do, give `every_all_reduce`",
                      step.name, step.other_all_reduces.size()));
    }
    throw io::Unmet(fmt::format(
        "no model: {} has no AccumulateGrad, and not all of its {} all-reduces have sizes",
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
      "the trace does not tell the gradients: {}",
      trace.steps.size(), trace.events,
      trace.held.empty() ? fmt::format("{} collectives in {}", step.collectives, step.name)
                         : described(trace.held),
      trace.has_times() ? "trace backward, on the CPU too (ProfilerActivity.CPU)"
                        : "record a whole training step, its backward pass, too"));
}

void check_communication(const Imported& trace, const TracedStep& last,
                         std::vector<std::string>& diagnostics,
                         std::vector<std::string>& of_model) {
  if (trace.world_size.value_or(1) <= 1) return;
  if (!last.buckets.empty()) {
    if (gathers_parameters(last)) {
      of_model.push_back(fmt::format(
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
        "in another way (ZeRO by reductions or all-to-alls, 1-bit optimizers)",
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

void say_left_out(const Imported& trace, std::vector<std::string>& diagnostics) {
  std::vector<HeldCollectives> others = trace.held;
  std::erase_if(others, is_all_reduce);
  if (others.empty()) return;
  diagnostics.push_back(fmt::format(
      "the model leaves out the job's communication besides all-reduces: {}", described(others)));
}

}  // namespace hipress::traces
