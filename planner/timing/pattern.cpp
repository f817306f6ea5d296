#include "planner/timing/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "sim/service_order.hpp"

namespace hipress::planner {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// Steps in any order, with their dependencies.
struct Draft {
  std::vector<Step> steps;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;

  std::uint32_t add(Step step, const std::vector<std::uint32_t>& after) {
    const auto id = static_cast<std::uint32_t>(steps.size());
    steps.push_back(step);
    for (const std::uint32_t before : after) edges.emplace_back(before, id);
    return id;
  }
};

Pattern finish(Draft draft) {
  Pattern pattern;
  // A predecessor counts once, even if it is connected both directly and through a Join.
  std::sort(draft.edges.begin(), draft.edges.end());
  draft.edges.erase(std::unique(draft.edges.begin(), draft.edges.end()), draft.edges.end());
  std::vector<std::uint32_t> waits(draft.steps.size(), 0);
  for (const auto& [before, after] : draft.edges) {
    ++waits[after];
    ++draft.steps[before].successors;
  }
  std::uint32_t begin = 0;
  for (std::size_t i = 0; i < draft.steps.size(); ++i) {
    Step& step = draft.steps[i];
    begin += std::exchange(step.successors, begin);
    if (waits[i] > std::numeric_limits<std::uint16_t>::max()) {
      throw std::length_error("a task waits for too many others");
    }
    pattern.waits.push_back(static_cast<std::uint16_t>(waits[i]));
    if (waits[i] == 0) pattern.sources.push_back(static_cast<std::uint32_t>(i));
    if (step.resource == Resource::kCodec) pattern.codec_work += step.work;
    if (step.resource == Resource::kPorts) pattern.port_work += step.work;
    pattern.longest += static_cast<double>(step.work) + static_cast<double>(step.delay);
    require_countable(pattern.longest);
  }
  draft.steps.push_back({.successors = begin});
  pattern.successors.reserve(draft.edges.size());
  for (const auto& [before, after] : draft.edges) pattern.successors.push_back(after);
  draft.steps.shrink_to_fit();
  pattern.steps = std::move(draft.steps);
  return pattern;
}

Step step_of(const TaskGraph& graph, const Task& task, const UnitWorks& works) {
  const casync::Factor* const factor = graph.factor_of(task);
  Step step = {.work = works.of(task, graph.factors_of(task)),
               .node = graph.representative(task.node),
               .resource = casync::resource_of(task.kind),
               .kind = task.kind,
               .factor = static_cast<std::uint8_t>(factor == nullptr ? 0 : factor->stage + 1)};
  if (step.resource == Resource::kPorts) step.shift = graph.folded ? 0 : task.peer_offset;
  if (task.kind == Kind::kSend) step.delay = works.latency();
  return step;
}

/// True for tasks that take no time, which patterns leave out.
bool is_left_out(const Task& task) { return task.kind == Kind::kRecv || task.kind == Kind::kJoin; }

/// Makes the pattern of a graph with one unit: its tasks in the order of service, without
/// computation, Joins and Recvs. The delay of a Send stands for its Recv.
Pattern pattern_of(const TaskGraph& graph, const UnitWorks& works) {
  std::vector<TaskId> kept;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (!casync::is_computation(graph[id]) && !is_left_out(graph[id])) kept.push_back(id);
  }
  std::sort(kept.begin(), kept.end(), [&](TaskId a, TaskId b) {
    return sim::place_in_unit(graph[a], a) < sim::place_in_unit(graph[b], b);
  });
  std::vector<std::uint32_t> rank(graph.tasks());
  for (std::uint32_t i = 0; i < kept.size(); ++i) rank[kept[i]] = i;
  Draft draft;
  draft.steps.reserve(kept.size());
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    draft.steps.push_back(step_of(graph, graph[kept[i]], works));
    for (const TaskId next : casync::successors(graph, kept[i])) {
      if (!is_left_out(graph[next])) {
        draft.edges.emplace_back(i, rank[next]);
        continue;
      }
      for (const TaskId last : casync::successors(graph, next)) {
        draft.edges.emplace_back(i, rank[last]);
      }
    }
  }
  Pattern pattern = finish(std::move(draft));
  for (std::uint32_t i = 0; i < kept.size(); i += graph.representatives()) {
    while (i < kept.size() && graph[kept[i]].kind != Kind::kAllReduce) ++i;
    if (i < kept.size()) pattern.collectives.push_back(i);
  }
  if (!graph.factors.empty()) pattern.carried = graph.first_factor;
  pattern.factors = static_cast<std::uint32_t>(graph.factors.size());
  return pattern;
}

/// Model and plan of a single unit, and its factors if it has any.
struct OneUnit {
  models::Model model;
  casync::Plan plan;
};

OneUnit unit_of(const PatternKey& key, const std::vector<casync::Algorithm>& algorithms,
                const costs::Cluster& cluster) {
  OneUnit one;
  one.model.gradients.push_back({.name = "unit", .elements = key.elements});
  one.plan = {.topology = std::string(key.topology->name),
              .nodes = cluster.nodes,
              .gpus_per_node = cluster.gpus_per_node,
              .algorithms = algorithms,
              .decisions = {{key.algorithm, key.partitions}}};
  if (key.factors.empty()) return one;
  casync::Algorithm& algorithm = one.plan.algorithms[static_cast<std::size_t>(key.algorithm)];
  algorithm.refusal = {};
  algorithm.stages = [&key](std::span<const std::int64_t>) {
    std::vector<casync::Algorithm::Factor> factors;
    for (const FactorSums& sums : key.factors) {
      constexpr std::int64_t kValueBytes = sizeof(float);
      const std::int64_t shorter = sums.values - sums.mean_values;
      factors.push_back(
          {.bytes = sums.end * kValueBytes, .mean_bytes = (sums.end - shorter) * kValueBytes});
    }
    return factors;
  };
  return one;
}

/// Coarse pattern of a unit: an average node's share, phase by phase. If only K < N nodes are
/// servers at a time, an average node does only `share` < 1 of a phase. The phase occupies its
/// resource for that share, but lasts as long as on the busiest node: `stretch` times that.
class CoarseDraft final : public casync::CoarsePattern {
 public:
  CoarseDraft(const PatternKey& key, const casync::Algorithm* algorithm, const Machines& machines,
              const UnitWorks& works)
      : key_(key),
        algorithm_(algorithm),
        works_(works),
        nodes_(machines.cluster.nodes),
        gpus_(machines.cluster.gpus_per_node) {}

  /// Makes the pattern. The topology must have a coarse one.
  Pattern take() {
    if (!key_.factors.empty()) return averaged();
    const casync::CoarseCosts unit = costs_of(key_.elements, algorithm_);
    casync::StepIds start, ends;
    const std::int64_t bytes = key_.elements * static_cast<std::int64_t>(sizeof(float));
    const Step local = {.work = works_.of({.amount = bytes, .kind = Kind::kLocalReduce}),
                        .resource = Resource::kLocal};
    if (gpus_ > 1) start = {draft_.add(local, {})};
    if (nodes_ > 1 && key_.topology->form == casync::Topology::Form::kWhole) {
      return all_reduced(start, local, bytes);
    }
    if (nodes_ > 1) ends = key_.topology->coarse(*this, unit, start);
    if (gpus_ > 1) draft_.add(local, ends.empty() ? start : ends);
    return finish(std::move(draft_));
  }

  std::uint32_t add(Resource resource, double work, double stretch, double latency,
                    const casync::StepIds& after) override {
    const double delay = work * (stretch - 1) + latency;
    return draft_.add({.work = static_cast<std::int64_t>(work + 0.5),
                       .delay = static_cast<std::int64_t>(delay + 0.5),
                       .resource = resource},
                      after);
  }

 private:
  casync::CoarseCosts costs_of(std::int64_t elements, const casync::Algorithm* algorithm) const {
    const casync::Slice slice = casync::slice(elements, key_.partitions, 0);
    const std::int64_t slices = (elements + slice.elements - 1) / slice.elements;
    casync::CoarseCosts unit;
    unit.nodes = nodes_;
    unit.share = static_cast<double>(slices) / nodes_;
    const std::int64_t bytes = algorithm
                                   ? algorithm->message_bytes(slice.elements)
                                   : slice.elements * static_cast<std::int64_t>(sizeof(float));
    unit.message =
        static_cast<double>(works_.of({.amount = bytes, .peer_offset = 1, .kind = Kind::kSend}));
    unit.latency = static_cast<double>(works_.latency());
    Task task = {.amount = slice.elements, .kind = Kind::kMerge};
    if (algorithm) {
      task.algorithm = key_.algorithm;
      task.kind = Kind::kEncode;
      unit.encode = static_cast<double>(works_.of(task));
      task.kind = Kind::kDecode;
      unit.decode = static_cast<double>(works_.of(task));
      task.flags = casync::kAccumulate;
    }
    unit.add = static_cast<double>(works_.of(task));
    return unit;
  }

  /// Pattern of factors: for each an encode and the phases of the raw topology, then a decode.
  Pattern averaged() {
    const std::vector<casync::Factor> factors = as_factors(key_.factors);
    const auto code = [&](Kind kind, std::size_t stage, const casync::StepIds& after) {
      const Task task = {.amount = key_.elements,
                         .kind = kind,
                         .algorithm = key_.algorithm,
                         .flags = casync::kFactors,
                         .stage = static_cast<std::uint8_t>(stage)};
      return draft_.add({.work = works_.of(task, factors)}, after);
    };
    std::vector<std::uint32_t> collectives;
    casync::StepIds ends;
    for (std::size_t stage = 0; stage < factors.size(); ++stage) {
      ends = {code(Kind::kEncode, stage, ends)};
      if (nodes_ == 1) continue;
      const std::int64_t elements = key_.factors[stage].elements_in(key_.partitions);
      if (key_.topology->form != casync::Topology::Form::kWhole) {
        ends = key_.topology->coarse(*this, costs_of(elements, nullptr), ends);
        continue;
      }
      const Task task = {.amount = elements * static_cast<std::int64_t>(sizeof(float)),
                         .kind = Kind::kAllReduce};
      const Step step = {.work = works_.of(task),
                         .resource = Resource::kPorts,
                         .factor = static_cast<std::uint8_t>(stage + 1)};
      ends = {draft_.add(step, ends)};
      collectives.push_back(ends.front());
    }
    code(Kind::kDecode, 0, ends);
    Pattern pattern = finish(std::move(draft_));
    pattern.collectives = std::move(collectives);
    pattern.carried = 1;
    pattern.factors = static_cast<std::uint32_t>(factors.size());
    return pattern;
  }

  Pattern all_reduced(const casync::StepIds& start, const Step& local, std::int64_t bytes) {
    const Task task = {.amount = bytes, .kind = Kind::kAllReduce};
    const Step step = {.work = works_.of(task), .resource = Resource::kPorts};
    const std::uint32_t reduce = draft_.add(step, start);
    if (gpus_ > 1) draft_.add(local, {reduce});
    Pattern pattern = finish(std::move(draft_));
    pattern.collectives = {reduce};
    return pattern;
  }

  const PatternKey& key_;
  const casync::Algorithm* const algorithm_;
  const UnitWorks& works_;
  const std::uint32_t nodes_, gpus_;
  Draft draft_;
};

}  // namespace

void require_countable(double picoseconds) {
  constexpr double kMax = 0x1p62;  // 53 days; the sum or difference of two still fits in 64 bits
  if (picoseconds <= kMax) return;
  throw io::InputError(
      "all that a plan does takes more than 53 days, which times in picoseconds do not hold: check "
      "bandwidths, overheads, latencies, compute speeds and the model's elements and times");
}

UnitWorks::UnitWorks(const Machines& machines, const sim::TaskCosts& costs)
    : works_(costs, machines.cluster, machines.cluster.nodes),
      path_(machines.cluster.nodes < 2
                ? costs::Path::kBetweenHosts
                : costs::path(machines.cluster, 0, machines.cluster.nodes - 1)),
      speed_(*std::min_element(machines.cluster.compute_speed.begin(),
                               machines.cluster.compute_speed.end())) {}

PatternBook::PatternBook(const std::vector<casync::Algorithm>& algorithms, const Machines& machines)
    : algorithms_(algorithms),
      machines_(machines),
      costs_(machines.profile, algorithms),
      works_(machines, costs_) {}

const Pattern& PatternBook::find(const PatternKey& key) {
  std::unique_ptr<const Pattern>& entry = patterns_[key];
  if (entry) return *entry;
  if (key.fidelity == Fidelity::kCoarse) {
    const casync::Algorithm* const algorithm = casync::algorithm_at(algorithms_, key.algorithm);
    entry = std::make_unique<const Pattern>(CoarseDraft(key, algorithm, machines_, works_).take());
  } else {
    if (stop_ && stop_()) throw sim::Stopped();
    const OneUnit one = unit_of(key, algorithms_, machines_.cluster);
    const auto folding =
        key.fidelity == Fidelity::kFolded ? casync::Folding::kFolded : casync::Folding::kNone;
    TaskGraph graph = casync::expand(one.model, one.plan, folding);
    for (std::size_t stage = 0; stage < key.factors.size(); ++stage) {
      casync::Factor& factor = graph.factors[stage];
      const std::uint32_t unit = factor.unit;
      factor = key.factors[stage].factor(unit, static_cast<std::uint32_t>(stage));
    }
    entry = std::make_unique<const Pattern>(pattern_of(graph, works_));
  }
  bytes_ += entry->bytes();
  return *entry;
}

bool PatternBook::trim(std::size_t most_bytes) {
  if (bytes_ <= most_bytes) return false;
  patterns_.clear();
  bytes_ = 0;
  return true;
}

}  // namespace hipress::planner
