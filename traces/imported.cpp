#include "traces/imported.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "models/shape.hpp"
#include "traces/json_trace.hpp"
#include "traces/node_trace.hpp"
#include "traces/profiler_trace.hpp"

namespace hipress::traces {
namespace {

constexpr std::size_t kLooked = 64;

/// JSON is text, and begins with a bracket; Chakra's messages hold lengths and field numbers.
bool looks_like_json(std::string_view first) {
  if (first.starts_with("\xef\xbb\xbf")) first.remove_prefix(3);
  const std::size_t start = first.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || (first[start] != '{' && first[start] != '[')) return false;
  return std::ranges::all_of(first, [](char one) {
    const auto byte = static_cast<unsigned char>(one);
    return byte >= 0x20 || one == '\t' || one == '\r' || one == '\n';
  });
}

Imported read_json(ByteStream& bytes) {
  ProfilerTrace profiler;
  NodeTrace nodes;
  const TraceHeader header = read_json_trace(
      bytes, [&](const ProfilerEvent& event) { profiler.add(event); },
      [&](const ExecutionNode& node) {
        nodes.add({.id = node.id,
                   .parent = node.parent,
                   .name = node.name,
                   .shape = node.input_shape,
                   .dtype = node.input_type});
      });
  if (!header.has_events && !header.has_nodes) {
    throw io::InputError(bytes.name(), 0,
                         "has neither 'traceEvents' nor 'nodes': it is no trace of PyTorch's "
                         "profiler or of its execution trace observer");
  }
  auto imported = header.has_events ? profiler.finish(header) : nodes.finish();
  if (imported) return *imported;
  throw io::InputError(bytes.name(), 0,
                       fmt::format("none of its {} is PyTorch's: no operator, no kernel; give what "
                                   "torch.profiler's export_chrome_trace wrote",
                                   header.has_events ? "events" : "nodes"));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The sum, if all sizes are told and there are any.
std::optional<std::int64_t> total_of(const std::vector<TracedGradient>& parts) {
  std::int64_t sum = 0;
  for (const TracedGradient& part : parts) {
    if (part.elements <= 0 || part.elements > models::kMaxElements - sum) return std::nullopt;
    sum += part.elements;
  }
  return parts.empty() ? std::nullopt : std::optional(sum);
}

using Parts = std::vector<TracedGradient> TracedStep::*;

/// Throws io::Unmet unless all steps have as many elements; steps without any are not compared.
void check_conserved(const Imported& trace, Parts parts, std::string_view what) {
  const TracedStep* first = nullptr;
  for (const TracedStep& step : trace.steps) {
    const auto total = total_of(step.*parts);
    if (!total) {
      throw io::Unmet(fmt::format(
          "no model: {} has no {} with sizes; leave out steps that are cut off (schedule of the "
          "profiler)",
          step.name, what));
    }
    if (first == nullptr) first = &step;
    if (*total == *total_of(first->*parts)) continue;
    throw io::Unmet(fmt::format(
        "no model: elements are not conserved: the {} of {} have {} elements, those of {} {}; "
        "leave out steps that differ (schedule of the profiler)",
        what, first->name, *total_of(first->*parts), step.name, *total));
  }
}

bool same_layout(const std::vector<TracedGradient>& a, const std::vector<TracedGradient>& b) {
  return std::ranges::equal(a, b, [](const TracedGradient& one, const TracedGradient& other) {
    return one.elements == other.elements && one.shape == other.shape;
  });
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
    const std::vector<const TracedStep*>& steps,
    const std::function<std::optional<double>(const TracedStep&)>& value) {
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

std::optional<models::Traced> traced_of(const std::vector<const TracedStep*>& steps) {
  const auto part = [&](std::optional<double> TracedStep::*member) {
    return median_of(steps, [member](const TracedStep& step) { return step.*member; });
  };
  const auto length = part(&TracedStep::length_s), compute = part(&TracedStep::compute_s),
             communication = part(&TracedStep::communication_s),
             exposed = part(&TracedStep::exposed_communication_s), idle = part(&TracedStep::idle_s);
  if (!length || !compute || !communication || !exposed || !idle || *length <= 0) return {};
  return models::Traced{.steps = static_cast<int>(steps.size()),
                        .step_s = *length,
                        .compute_s = *compute,
                        .communication_s = *communication,
                        .exposed_communication_s = *exposed,
                        .idle_s = *idle};
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

/// Why a trace has no sizes that could be the model's.
[[noreturn]] void refuse_sizes(const TracedStep& step) {
  if (!step.gradients.empty()) {
    throw io::Unmet(fmt::format(
        "no model: the trace tells the sizes of neither the {} gradients (record with "
        "record_shapes=True) nor of the collectives that they start ('In msg nelems', from "
        "PyTorch 2 on with NCCL)",
        step.gradients.size()));
  }
  if (total_of(step.other_all_reduces)) {
    throw io::Unmet(fmt::format(
        "no model: the trace has no AccumulateGrad, so nothing says which of its {} all-reduces "
        "carry gradients; if all of them do, say --every-all-reduce",
        step.other_all_reduces.size()));
  }
  throw io::Unmet(
      "no model: the trace has no AccumulateGrad, so nothing says what the gradients are: trace "
      "backward, on the CPU too (ProfilerActivity.CPU)");
}

/// The gradients if all have sizes, else the buckets, else what the options allow.
const PartsRow& choose_parts(const TracedStep& step, const ImportOptions& options,
                             std::vector<std::string>& diagnostics) {
  if (total_of(step.gradients)) return kGradients;
  if (total_of(step.buckets)) {
    diagnostics.push_back(fmt::format(
        "the gradients of the model are the {} buckets of DDP, not the {} gradients in them, "
        "whose sizes the trace does not tell: record with record_shapes=True",
        step.buckets.size(), step.gradients.size()));
    return kBuckets;
  }
  if (options.every_all_reduce && total_of(step.other_all_reduces)) return kAllReduces;
  refuse_sizes(step);
}

/// Steps with the last one's layout.
std::vector<const TracedStep*> alike_last(const Imported& trace, Parts parts,
                                          std::vector<std::string>& diagnostics) {
  std::vector<const TracedStep*> alike;
  for (const TracedStep& step : trace.steps) {
    if (same_layout(step.*parts, trace.steps.back().*parts)) alike.push_back(&step);
  }
  if (alike.size() < trace.steps.size()) {
    diagnostics.push_back(fmt::format(
        "{} of the {} steps have other gradients or buckets than the last, or another order, and "
        "are left out of the medians",
        trace.steps.size() - alike.size(), trace.steps.size()));
  }
  return alike;
}

/// Gradients with sizes and, if all are told, ready times.
void add_gradients(const std::vector<const TracedStep*>& steps, const PartsRow& row,
                   models::Model& model, bool& has_times) {
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

}  // namespace

std::string short_text(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return io::printable(text.substr(0, kMost));
}

std::optional<std::int64_t> TracedStep::collective_elements() const { return total_of(buckets); }

Imported read_trace(ByteStream& bytes) {
  Peeked peeked(bytes);
  if (peeked.peek(1).empty()) {
    throw io::InputError(bytes.name(), 0, "is empty; export the trace again");
  }
  return looks_like_json(peeked.peek(kLooked)) ? read_json(peeked) : read_chakra_trace(peeked);
}

Imported read_trace(const std::string& path) { return read_trace(*open_unpacked(path)); }

ImportedModel model_of(const Imported& trace, const std::string& name, const ImportOptions& options,
                       std::vector<std::string>& diagnostics) {
  if (!trace.has_steps || trace.steps.empty()) {
    throw io::Unmet("no model: the trace does not tell where its steps begin");
  }
  const TracedStep& last = trace.steps.back();
  const PartsRow& row = choose_parts(last, options, diagnostics);
  check_conserved(trace, row.parts, row.plural);
  const auto in_gradients = total_of(last.gradients), in_buckets = total_of(last.buckets);
  if (in_gradients && in_buckets && *in_gradients != *in_buckets) {
    throw io::Unmet(
        fmt::format("no model: elements are not conserved: the gradients of {} have {} elements, "
                    "the buckets that carry them {}",
                    last.name, *in_gradients, *in_buckets));
  }
  const std::vector<const TracedStep*> steps = alike_last(trace, row.parts, diagnostics);
  ImportedModel imported;
  models::Model& model = imported.model;
  model.name = name;
  model.source = fmt::format("{} of {}{}", trace.format,
                             trace.hardware.empty() ? "unknown hardware" : trace.hardware,
                             trace.world_size ? fmt::format(", {} ranks", *trace.world_size) : "");
  bool has_times = true;
  add_gradients(steps, row, model, has_times);
  const auto forward = median_of(steps, [](const TracedStep& step) { return step.forward_s; });
  if (has_times && forward) {
    model.forward_s = std::max(0.0, *forward);
  } else {
    for (models::Gradient& gradient : model.gradients) gradient.ready_s = 0;
    diagnostics.push_back("the model has no times: give the tools --compute-time");
  }
  check_time(model.forward_s, "forward");
  imported.traced = traced_of(steps);
  if (imported.traced) check_time(imported.traced->step_s, "a step");
  diagnostics.push_back(
      fmt::format("names: PyTorch records none, so the model's are {0}0 to {0}{1}", row.name,
                  model.gradients.size() - 1));
  return imported;
}

}  // namespace hipress::traces
