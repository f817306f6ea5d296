#include "traces/node_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "io/error.hpp"
#include "models/model.hpp"
#include "models/shape.hpp"
#include "traces/autograd_names.hpp"
#include "traces/communication.hpp"
#include "traces/tensors.hpp"

namespace hipress::traces {
namespace {

/// Name without the call number that Chakra's converter appends, as in "c10d::allreduce_(1)".
std::string_view without_number(std::string_view name) {
  if (!name.ends_with(')')) return name;
  const std::size_t open = name.rfind('(');
  const std::string_view inside = name.substr(open + 1, name.size() - open - 2);
  const bool is_number = open != std::string_view::npos && !inside.empty() &&
                         inside.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? name.substr(0, open) : name;
}

}  // namespace

void NodeTrace::add(const TraceNode& node) {
  ++nodes_;
  const std::string_view name = without_number(node.name);
  Kept kept{.id = node.id};
  if (node.all_reduce_bytes && !node.is_cpu) {
    kept.role = Role::kKernel;
  } else if (name == kAccumulate) {
    kept.role = Role::kAccumulate;
  } else if (name.starts_with(kEvaluate) && name.substr(kEvaluate.size()) == kAccumulate) {
    kept.role = Role::kEvaluate;
  } else if (name == "c10d::allreduce_") {
    kept.role = Role::kAllReduce;
  } else if (node.all_reduce_bytes) {
    kept.role = Role::kCpuKernel;
  } else if (node.is_reduce_scatter || (name.starts_with("c10d::") &&
                                        collective_named(name) == CollectiveKind::kReduceScatter)) {
    kept.role = Role::kReduceScatter;
  } else if (name.starts_with("ProfilerStep#")) {
    kept.role = Role::kStep;
    kept.name = short_text(name);
    ranks_.add_step(kept.name);
  } else if (name.starts_with("Optimizer.step#")) {
    kept.role = Role::kOptimizer;
    ++optimizer_steps_;
  } else if (name.starts_with("[pytorch|profiler|execution_") && name.ends_with("|process]")) {
    ++roots_;
  }
  keep_communication(node, name);
  keep_sparse(node, name);
  keep_sharded(node, name);
  const bool by_itself = node.all_reduce_bytes || node.is_reduce_scatter;
  is_of_pytorch_ =
      is_of_pytorch_ || name.starts_with("aten::") || (kept.role != Role::kOther && !by_itself);
  links_.insert_or_assign(node.id, Link{node.parent, kept.role});
  if (is_in_place(name) && node.shapes != nullptr && !node.shapes->first.empty()) {
    in_place_.push_back({node.id, {std::string(name), node.shapes->first}});
  }
  if (kept.role == Role::kOther || kept.role == Role::kOptimizer) return;
  TracedGradient& gradient = kept.gradient;
  gradient.dtype = dtype_of(short_text(node.dtype));
  const std::int64_t bytes_each = bytes_of_type(gradient.dtype);
  // A scalar parameter has a type. A node without one has no tensor, and so no gradient.
  const bool no_dimensions = node.has_shape && node.shape.empty();
  if (kept.role == Role::kAccumulate && no_dimensions && bytes_each == 0) return;
  gradient.elements = no_dimensions && bytes_each > 0 ? 1 : elements_or_none(node.shape);
  if (kept.role == Role::kAccumulate) gradient.shape = node.shape;
  if (kept.role == Role::kKernel || kept.role == Role::kCpuKernel) {
    gradient.assumed = gradient.dtype.empty();
    if (gradient.assumed) gradient.dtype = models::to_string(models::Dtype::kFloat32);
    const std::int64_t each = bytes_of_type(gradient.dtype);
    gradient.elements = each == 0 ? 0 : *node.all_reduce_bytes / each;
  }
  kept_.push_back(std::move(kept));
}

/// Counts a node's communication, as its attributes or its name describe it.
void NodeTrace::keep_communication(const TraceNode& node, std::string_view name) {
  constexpr std::string_view kC10d = "c10d::";
  const bool is_call = node.communication.empty();
  if (is_call && !name.starts_with(kC10d)) return;
  const std::string kind(is_call ? text_of(collective_named(name)) : node.communication);
  Held& held = (is_call ? called_ : held_)[kind];
  HeldCollectives& part = node.is_cpu ? held.cpu : held.gpu;
  ++part.count;
  part.bytes += std::min(node.bytes, INT64_MAX - part.bytes);
}

/// Collectives of the trace, from the GPU's records if it has any: the CPU's only repeat them.
std::vector<HeldCollectives> NodeTrace::held() const {
  const bool has_nodes = !held_.empty();
  const auto& all = has_nodes ? held_ : called_;
  const bool has_gpu =
      std::ranges::any_of(all, [](const auto& one) { return one.second.gpu.count > 0; });
  std::vector<HeldCollectives> found;
  for (const auto& [kind, held] : all) {
    const HeldCollectives& part = has_gpu ? held.gpu : held.cpu;
    if (part.count > 0) found.push_back({kind, part.count, part.bytes});
  }
  return found;
}

void NodeTrace::keep_sparse(const TraceNode& node, std::string_view name) {
  if (name.starts_with("aten::") && name.find("sparse_backward") != std::string_view::npos) {
    sparse_operator_ = short_text(name);
  }
  if (!is_of_sparse_tensors(name)) return;
  sparse_.emplace_back(node.id, node.shapes ? sparse_size_of(name, *node.shapes) : SparseSize());
}

/// Sizes of sparse gradients by the ID of their AccumulateGrad node.
std::map<std::int64_t, SparseSize> NodeTrace::sparse_gradients() const {
  std::map<std::int64_t, SparseSize> found;
  SparseSize made;  // last known size
  for (const auto& [id, size] : sparse_) {
    if (size.values > 0) made = size;
    auto at = links_.find(id);
    for (int depth = 0; at != links_.end() && depth < kDeepestCall; ++depth) {
      if (at->second.role == Role::kAccumulate) {
        found[at->first] = made;
        break;
      }
      at = links_.find(at->second.parent);
    }
  }
  return found;
}

/// Throws io::InputError if the trace holds several ranks.
void NodeTrace::check_ranks() {
  if (roots_ > 1) ranks_.add_reason(fmt::format("{} nodes are of processes", roots_));
  const auto twice = std::ranges::adjacent_find(kept_, {}, &Kept::id);
  if (twice != kept_.end()) {
    ranks_.add_reason(fmt::format("node {} occurs more than once", twice->id));
  }
  ranks_.require_one();
}

/// ID of the nearest direct or indirect caller with that role; -1 without one.
std::int64_t NodeTrace::caller(std::int64_t id, Role role) const {
  auto at = links_.find(id);
  for (int depth = 0; at != links_.end() && depth < kDeepestCall; ++depth) {
    at = links_.find(at->second.parent);
    if (at != links_.end() && at->second.role == role) return at->first;
  }
  return -1;
}

void NodeTrace::find_updates() {
  std::map<std::int64_t, std::vector<Update>> steps;
  for (auto& [id, update] : in_place_) {
    const std::int64_t step = caller(id, Role::kOptimizer);
    if (step >= 0) steps[step].push_back(std::move(update));
  }
  for (const auto& [id, updates] : steps) updated_.add_step(updates);
  in_place_ = {};
}

/// Adds a node to a step. `bucket` is the role of nodes that are buckets.
void NodeTrace::add_to_step(const Kept& kept, Role bucket, TracedStep& step) const {
  if (kept.role == Role::kEvaluate) {
    ++step.returned;  // undone below for evaluations in which AccumulateGrad is called
  } else if (kept.role == Role::kAccumulate) {
    step.gradients.push_back(kept.gradient);
    step.returned -= is_below(kept.id, Role::kEvaluate) ? 1 : 0;
  } else if (kept.role == Role::kReduceScatter) {
    ++step.reduce_scatters;
    ++step.collectives;
  } else if (kept.role == bucket && !is_below(kept.id, bucket)) {
    ++step.collectives;
    if (carries_counts(kept.gradient.dtype)) return;
    const bool of_gradients = is_below(kept.id, Role::kEvaluate);
    (of_gradients ? step.buckets : step.other_all_reduces).push_back(kept.gradient);
  }
}

bool NodeTrace::has(Role role) const {
  return std::ranges::any_of(kept_, [role](const Kept& one) { return one.role == role; });
}

/// Role of nodes that are buckets: records of the GPU if it has any, since the CPU's repeat them.
NodeTrace::Role NodeTrace::role_of_buckets() const {
  for (const Role role : {Role::kKernel, Role::kAllReduce}) {
    if (has(role)) return role;
  }
  return Role::kCpuKernel;
}

/// Splits the nodes into steps. Nodes before the first step form a truncated step, which is used
/// only if the steps have no gradients.
void NodeTrace::add_steps(Imported& imported) const {
  const Role bucket = role_of_buckets();
  std::vector<TracedStep> steps = {{.name = "trace"}};
  std::vector<std::int64_t> begins = {INT64_MIN};
  for (const Kept& kept : kept_) {
    if (kept.role == Role::kStep) {
      steps.push_back({.name = kept.name});
      begins.push_back(kept.id);
    } else {
      add_to_step(kept, bucket, steps.back());
    }
  }
  const bool in_steps = std::any_of(steps.begin() + 1, steps.end(),
                                    [](const TracedStep& step) { return !step.gradients.empty(); });
  const bool before = !steps.front().gradients.empty();
  add_sharded(steps, begins);
  if (steps.size() > 1 && (in_steps || !before)) steps.erase(steps.begin());
  for (TracedStep& step : steps) {
    step.of_inputs =
        taken_out(step.gradients, updated_.of_inputs(step.gradients, total_of(step.buckets)));
  }
  imported.steps = std::move(steps);
}

std::optional<Imported> NodeTrace::finish() {
  if (!is_of_pytorch_ && held_.empty()) return std::nullopt;
  Imported imported{.format = "PyTorch execution trace", .events = nodes_};
  imported.is_generated = !is_of_pytorch_;
  imported.held = held();
  imported.sparse_operator = sparse_operator_;
  std::ranges::stable_sort(kept_, {}, &Kept::id);
  check_ranks();
  std::ranges::stable_sort(sparse_, {}, [](const auto& one) { return one.first; });
  for (const auto& [id, size] : sparse_gradients()) {
    const auto at = std::ranges::lower_bound(kept_, id, {}, &Kept::id);
    if (at != kept_.end() && at->id == id) at->gradient.sparse = size;
  }
  std::ranges::stable_sort(started_, {}, &Start::id);
  find_updates();
  imported.has_steps = has(Role::kStep) || optimizer_steps_ <= 1;
  if (!imported.has_steps) {
    imported.not_told.push_back(
        fmt::format("the start of its steps: it has {} steps of an optimizer and no ProfilerStep; "
                    "record one iteration",
                    optimizer_steps_));
  }
  add_steps(imported);
  if (imported.is_generated) return imported;
  imported.not_told.emplace_back(
      "times: execution traces have none that gradients could be ready at; import the profiler's "
      "trace, or give hipress-plan and hipress-sim `compute_time`");
  return imported;
}

std::vector<std::int64_t> first_shape(std::string_view text) {
  const std::size_t first = text.find_first_not_of("[ ");
  if (first == std::string_view::npos || first == 0) return {};
  text = text.substr(first, text.find(']', first) - first);
  std::vector<std::int64_t> shape;
  while (!text.empty() && shape.size() <= models::kMaxDimensions) {
    std::int64_t dimension = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, dimension);
    if (error != std::errc()) return {};
    shape.push_back(dimension);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (text.empty()) break;
    const std::size_t next = text.find_first_not_of(", ");
    if (next == 0 || next == std::string_view::npos) return {};
    text.remove_prefix(next);
  }
  return shape;
}

InputShapes input_shapes(std::string_view text) {
  InputShapes shapes;
  int depth = 0, argument = -1;
  bool is_open = false;  // numbers belong to the last tensor
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char one = text[at];
    if (one == '[' || one == ']') {
      is_open = false;
      depth += one == '[' ? 1 : -1;
      if (one == '[' && depth == 2) ++argument;
      continue;
    }
    std::int64_t dimension = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + at, end, dimension);
    if (error != std::errc()) continue;
    at = static_cast<std::size_t>(stop - text.data()) - 1;
    if (depth < 2 || argument > 1) continue;
    InputShapes::Shapes& all = argument == 0 ? shapes.first : shapes.second;
    if (!is_open && all.size() == InputShapes::kMost) continue;
    if (!is_open) all.emplace_back();
    is_open = true;
    if (all.back().size() <= models::kMaxDimensions) all.back().push_back(dimension);
  }
  return shapes;
}

}  // namespace hipress::traces
