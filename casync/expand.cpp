#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "casync/folding.hpp"
#include "casync/layout.hpp"
#include "casync/rewrites.hpp"
#include "casync/sharded.hpp"
#include "casync/topology.hpp"

namespace hipress::casync {
namespace {

/// A part of the forward pass, on every node.
struct ForwardStep {
  std::uint32_t gradient = 0;
  Picoseconds length{};
};

std::vector<ForwardStep> whole_forward(const models::Model& model) {
  return {{0, from_seconds(models::before_backward_s(model))}};
}

/// One part of Forward per gradient, in the reverse order of backward. The last part includes all
/// further passes before the last backward, if a step has several micro-steps. Lengths are
/// differences of rounded times, so their sum is exact.
std::vector<ForwardStep> forward_by_gradient(const models::Model& model) {
  std::vector<std::uint32_t> order = backward_order(model);
  if (order.empty()) return whole_forward(model);
  const bool timed = models::backward_s(model) > 0;
  std::vector<double> weight(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const models::Gradient& gradient = model.gradients[order[i]];
    const double before = i > 0 ? model.gradients[order[i - 1]].ready_s : 0;
    weight[i] = timed ? gradient.ready_s - before : static_cast<double>(gradient.elements);
  }
  double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  if (total == 0) {  // with_even_slices() may leave no elements
    weight.assign(weight.size(), 1);
    total = static_cast<double>(weight.size());
  }
  std::vector<ForwardStep> steps;
  const double first_s = model.optimizer_s + model.forward_s;
  double reached = 0;
  Picoseconds due{};
  for (std::size_t i = order.size(); i-- > 0;) {
    reached += weight[i];
    const Picoseconds end = i == 0 ? from_seconds(models::before_backward_s(model))
                                   : from_seconds(first_s * (reached / total));
    steps.push_back({order[i], std::max(end, due) - due});
    due = std::max(end, due);
  }
  return steps;
}

bool fills_slice(const Task& task) {
  return task.kind != Kind::kEncode && task.kind != Kind::kSend && task.kind != Kind::kJoin;
}

/// Adds period after period of the schedule to a graph.
///
/// With several GPUs per node and several steps per period, the GPUs of a node average in every
/// step: each unit is reduced and broadcast within the node. Nodes synchronise the changes of their
/// weights. These are equal on a node's GPUs, so each GPU takes its share without a further
/// reduction. After the synchronisation, a LocalBroadcast gives every GPU the whole result.
class Expansion {
 public:
  /// `lasts`: true if several periods follow, so that a synchronisation may begin in one and be
  /// awaited in the next.
  Expansion(const models::Model& model, const Plan& plan, bool lasts, Folding folding)
      : model_(model),
        plan_(plan),
        layout_(make_layout(model, plan)),
        forward_(lasts || !layout_.timetable.is_uniform() ? forward_by_gradient(model)
                                                          : whole_forward(model)),
        builder_(plan.nodes, layout_.gradients, folding),
        last_compute_(plan.nodes, kNoIndex),
        last_collective_(plan.nodes, kNoIndex) {
    if (plan.gpus_per_node == 0) throw std::invalid_argument("a node has at least one GPU");
    averages_in_nodes_ = plan.gpus_per_node > 1 && !layout_.timetable.is_uniform();
    if (averages_in_nodes_) {
      in_nodes_.assign(layout_.units.size(), std::vector<TaskId>(representatives(), kNoIndex));
    }
    read_timetable();
    forwards_.resize(layout_.gradients);
    backward_.resize(layout_.gradients);
    if (lasts || !layout_.timetable.is_uniform()) keep_ends();
    if (plan.gpus_per_node == 1 || keeps_ends_) return;
    values_.assign(layout_.units.size(), std::vector<std::vector<TaskId>>(plan.nodes));
    sends_ = values_;
  }

  /// Adds one period of the schedule, step by step.
  void add_period() {
    for (std::uint32_t step = 0; step < layout_.timetable.steps; ++step) {
      if (begins_[step].empty() && awaited_[step].empty() && !averages_in_nodes_) {
        ++plain_steps_;
      } else {
        add_plain_steps();
        add_step(step);
      }
    }
    add_plain_steps();
  }

  TaskGraph take() {
    if (!plan_.pipelining || !sorted_) builder_.sort();
    if (plan_.batch.threshold_bytes > 0) {
      batch_launches(builder_, plan_.batch, layout_);
      builder_.sort();
    }
    TaskGraph graph = std::move(builder_).build();
    graph.mix = model_.mix;
    graph.need_places = need_places(layout_, model_);
    graph.computing =
        computing_of(model_, layout_.timetable.is_uniform() ? BackwardTasks::kOfGradients
                                                            : BackwardTasks::kOfSeveral);
    graph.first_factor = layout_.first_factor;
    graph.factors = layout_.factors;
    for (std::uint32_t place = 0; place < graph.factors.size(); ++place) {
      graph.staged_units.try_emplace(graph.factors[place].unit, place);
    }
    return graph;
  }

  void name_operands() {
    builder_.name_operands();
    runs_ = true;
  }

 private:
  void keep_ends() {
    keeps_ends_ = true;
    values_.assign(layout_.units.size(), std::vector<std::vector<TaskId>>(plan_.nodes));
    sends_ = values_;
  }

  /// Number of nodes whose tasks are added. In a folded graph, the first node stands for all.
  std::uint32_t representatives() const { return builder_.folded() ? 1 : plan_.nodes; }
  std::uint32_t nodes_per_representative() const { return plan_.nodes / representatives(); }

  /// Records which parts begin their synchronisation in each step, and which are awaited there.
  void read_timetable() {
    const Timetable& table = layout_.timetable;
    begins_.resize(table.steps);
    awaited_.resize(table.steps);
    for (const Synchronisation& one : table.synchronisations) {
      begins_[one.step].push_back(one.part);
      awaited_[one.awaited % table.steps].push_back(one.part);
    }
  }

  bool is_one_of(const std::vector<std::uint32_t>& parts, std::uint32_t gradient) const {
    const std::vector<std::uint32_t>& part_of = layout_.timetable.part_of;
    return gradient < part_of.size() && std::ranges::find(parts, part_of[gradient]) != parts.end();
  }

  TaskId compute(const Task& task) {
    const TaskId id = builder_.add(task);
    TaskId& last = last_compute_[task.node];
    if (last != kNoIndex) builder_.edge(last, id);
    last = id;
    return id;
  }

  /// Adds the steps without communication, as one task per node.
  void add_plain_steps() {
    if (plain_steps_ == 0) return;
    const Picoseconds step =
        from_seconds(models::before_backward_s(model_)) + from_seconds(models::backward_s(model_));
    if (step.count() > INT64_MAX / plain_steps_) {
      throw std::invalid_argument("schedule " + plan_.schedule.text() + ": " +
                                  std::to_string(plain_steps_) +
                                  " steps take longer than times can hold; give fewer");
    }
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      compute({.amount = plain_steps_ * step.count(), .node = node, .kind = Kind::kSteps});
    }
    plain_steps_ = 0;
  }

  void add_step(std::uint32_t step) {
    const TaskId first = builder_.size();
    add_computation(step);
    if (keeps_ends_) wait_for_earlier(step);
    for (std::uint32_t unit = 0; unit < layout_.units.size(); ++unit) {
      const std::vector<std::uint32_t>& members = layout_.units[unit].members;
      if (members.empty()) continue;
      if (averages_in_nodes_) average_in_nodes(unit);
      if (is_one_of(begins_[step], members.front())) synchronise(unit);
    }
    order_collectives(first);
    if (!plan_.pipelining) remove_pipelining(builder_, layout_, first);
  }

  void synchronise(std::uint32_t unit) {
    if (layout_.units[unit].factors > 0) return average_factors(unit);
    const UnitWork work = work_of(unit);
    const TaskId first_of_unit = builder_.size();
    const std::size_t first_edge = builder_.edges().size();
    layout_.units[unit].topology->expand(builder_, work);
    note_ends(unit, first_of_unit, first_edge);
    if (plan_.gpus_per_node > 1) broadcast(unit, work);
  }

  void add_computation(std::uint32_t step) {
    const std::vector<std::uint32_t> order = backward_order(model_);
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      add_forward(step, node);
      add_backward(step, node, order);
    }
  }

  /// Adds a Forward task for each gradient that this step awaits (all, if the GPUs of a node
  /// average in every step). It includes the computation up to the next such gradient.
  void add_forward(std::uint32_t step, std::uint32_t node) {
    TaskId last = kNoIndex;
    for (const ForwardStep& part : forward_) {
      const bool waits = averages_in_nodes_ || is_one_of(awaited_[step], part.gradient);
      if (waits || last == kNoIndex) last = compute({.gradient = part.gradient, .node = node});
      builder_.task(last).amount += part.length.count();
      if (waits) on_its_nodes(node, last, forwards_[part.gradient]);
    }
  }

  /// Adds a Backward task for each gradient whose synchronisation begins in this step (all, if the
  /// GPUs of a node average in every step). It includes the computation since the previous such
  /// task.
  void add_backward(std::uint32_t step, std::uint32_t node,
                    const std::vector<std::uint32_t>& order) {
    Picoseconds reached{0};
    TaskId open = kNoIndex;
    for (const std::uint32_t gradient : order) {
      if (open == kNoIndex) open = compute({.node = node, .kind = Kind::kBackward});
      const Picoseconds due = from_seconds(model_.gradients[gradient].ready_s);
      Task& task = builder_.task(open);
      task.amount += (due - reached).count();
      task.gradient = gradient;
      reached = due;
      if (!averages_in_nodes_ && !is_one_of(begins_[step], gradient)) continue;
      on_its_nodes(node, open, backward_[gradient]);
      open = kNoIndex;
    }
  }

  /// Sets the entry of the task's node in `tasks`; in a folded graph, the entries of all nodes.
  void on_its_nodes(std::uint32_t node, TaskId id, std::vector<TaskId>& tasks) const {
    tasks.resize(plan_.nodes);
    std::fill_n(tasks.begin() + node, nodes_per_representative(), id);
  }

  /// Makes the forward pass wait for the parts that this step awaits. Makes the backward pass of a
  /// part whose synchronisation begins wait until the node has sent the values that it overwrites.
  void wait_for_earlier(std::uint32_t step) {
    for (std::uint32_t gradient = 0; gradient < layout_.gradients; ++gradient) {
      const std::uint32_t unit = layout_.unit_of[gradient];
      const bool awaited = is_one_of(awaited_[step], gradient);
      const bool begins = is_one_of(begins_[step], gradient);
      if (averages_in_nodes_) wait_for_nodes(unit, gradient);
      for (std::uint32_t node = 0; node < plan_.nodes; ++node) {
        if (awaited) {
          for (const TaskId end : values_[unit][node]) {
            builder_.edge(end, forwards_[gradient][node]);
          }
        }
        if (!begins) continue;
        for (const TaskId end : sends_[unit][node]) builder_.edge(end, backward_[gradient][node]);
      }
    }
  }

  /// Makes a gradient's forward pass wait for the last mean over the node's GPUs, if any.
  void wait_for_nodes(std::uint32_t unit, std::uint32_t gradient) {
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      const TaskId end = in_nodes_[unit][node];
      if (end != kNoIndex) builder_.edge(end, forwards_[gradient][node]);
    }
  }

  /// Averages a unit over each node's GPUs.
  void average_in_nodes(std::uint32_t unit) {
    const std::vector<TaskId> sums = reduced(unit, ready_of(unit));
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      const TaskId all = builder_.add(local_task(Kind::kLocalBroadcast, unit, node));
      builder_.edge(sums[node], all);
      in_nodes_[unit][node] = all;
    }
  }

  /// Per node, the task after which all its GPUs have the unit's mean over them.
  std::vector<TaskId> averaged(std::uint32_t unit) const {
    std::vector<TaskId> ready;
    for (const TaskId all : in_nodes_[unit]) {
      ready.insert(ready.end(), nodes_per_representative(), all);
    }
    return ready;
  }

  UnitWork work_of(std::uint32_t unit) {
    const Unit& what = layout_.units[unit];
    return {.unit = unit,
            .elements = what.elements,
            .partitions = what.partitions,
            .algorithm_index = what.algorithm,
            .algorithm = algorithm_at(plan_.algorithms, what.algorithm),
            .root = plan_.root,
            .rails = plan_.rails,
            // In the executor, gradients of any type are widened to fp32.
            .as_stored = !runs_ &&
                         is_stored_as(what, model_, algorithm_at(plan_.algorithms, what.algorithm)),
            .ready = shared_out(unit)};
  }

  /// Per node, the task after which synchronisation between nodes can start. With several GPUs,
  /// each GPU then has its share of the sum.
  std::vector<TaskId> shared_out(std::uint32_t unit) {
    if (averages_in_nodes_) return averaged(unit);
    std::vector<TaskId> ready = ready_of(unit);
    if (plan_.gpus_per_node == 1) return ready;
    if (layout_.units[unit].topology->operation == Operation::kMean) return reduced(unit, ready);
    // One GPU of the root scatters its values, at the cost of a reduce-scatter. The other nodes
    // keep nothing.
    const TaskId scatter = builder_.add(local_task(Kind::kLocalReduce, unit, plan_.root));
    builder_.edge(ready[plan_.root], scatter);
    ready[plan_.root] = scatter;
    return ready;
  }

  /// Averages a unit by its factors. On every node, an Encode makes each stage's factor after the
  /// mean of the previous one. A Decode follows the last mean. Factors travel like raw values.
  void average_factors(std::uint32_t unit) {
    const Unit& what = layout_.units[unit];
    if (keeps_ends_) sends_[unit].assign(plan_.nodes, {});
    std::vector<std::vector<TaskId>> after(representatives());
    const std::vector<TaskId> ready = ready_of(unit);
    for (std::uint32_t node = 0; node < representatives(); ++node) after[node] = {ready[node]};
    for (std::uint32_t stage = 0; stage < what.factors; ++stage) {
      const std::uint32_t factor = what.first_factor + stage;
      UnitWork work{.unit = factor,
                    .elements = elements_on_wire(factor),
                    .partitions = layout_.units[factor].partitions,
                    .root = plan_.root,
                    .rails = plan_.rails,
                    .ready = {}};
      for (std::uint32_t node = 0; node < representatives(); ++node) {
        Task encode = factor_task(Kind::kEncode, unit, node);
        encode.stage = static_cast<std::uint8_t>(stage);
        const TaskId id = add_behind(after[node], encode,
                                     {slice_of_unit(unit, node), factor_of_unit(factor, node)});
        work.ready.insert(work.ready.end(), nodes_per_representative(), id);
      }
      after = average(factor, work);
    }
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      const std::uint32_t last = what.first_factor + what.factors - 1;
      const TaskId decode = add_behind(after[node], factor_task(Kind::kDecode, unit, node),
                                       {factor_of_unit(last, node), slice_of_unit(unit, node)});
      if (keeps_ends_) values_[unit][node] = {decode};
    }
  }

  /// Elements of a factor on the wire: the largest over steps in graphs to run, else the mean.
  std::int64_t elements_on_wire(std::uint32_t factor) const {
    const Unit& unit = layout_.units[factor];
    if (runs_) return unit.elements;
    const Factor& what = layout_.factors[factor - layout_.first_factor];
    return mean_elements(unit.elements, what.values - what.mean_values, unit.partitions);
  }

  Task factor_task(Kind kind, std::uint32_t unit, std::uint32_t node) const {
    return {.amount = layout_.units[unit].elements,
            .gradient = unit,
            .node = node,
            .kind = kind,
            .algorithm = layout_.units[unit].algorithm,
            .flags = kFactors};
  }

  TaskId add_behind(const std::vector<TaskId>& before, const Task& task, const Operands& operands) {
    const TaskId id = builder_.add(task, operands);
    for (const TaskId one : before) builder_.edge(one, id);
    return id;
  }

  std::uint32_t slice_of_unit(std::uint32_t unit, std::uint32_t node) {
    return builder_.slice_of(
        {.gradient = unit, .node = node},
        layout_.units[unit].elements * static_cast<std::int64_t>(sizeof(float)));
  }

  std::uint32_t factor_of_unit(std::uint32_t factor, std::uint32_t node) {
    return builder_.factor(
        factor, node, layout_.units[factor].elements * static_cast<std::int64_t>(sizeof(float)));
  }

  /// Averages a factor. Returns, for each representative, the tasks after which it has the mean. In
  /// a folded graph, other nodes' tasks stand for the first node's tasks of other partitions.
  std::vector<std::vector<TaskId>> average(std::uint32_t factor, const UnitWork& work) {
    const TaskId first = builder_.size();
    const std::size_t first_edge = builder_.edges().size();
    layout_.units[factor].topology->expand(builder_, work);
    const Ends ends = ends_of(first, first_edge);
    std::vector<std::vector<TaskId>> after(representatives());
    for (std::uint32_t node = 0; node < plan_.nodes; ++node) {
      std::vector<TaskId>& of_node = after[builder_.representative(node)];
      of_node.insert(of_node.end(), ends.values[node].begin(), ends.values[node].end());
      if (keeps_ends_) {
        std::vector<TaskId>& sends = sends_[layout_.owner(factor)][node];
        sends.insert(sends.end(), ends.sends[node].begin(), ends.sends[node].end());
      }
    }
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      if (after[node].empty()) after[node] = {work.ready[node]};
    }
    return after;
  }

  Task local_task(Kind kind, std::uint32_t unit, std::uint32_t node) const {
    return {.amount = layout_.units[unit].elements * static_cast<std::int64_t>(sizeof(float)),
            .gradient = unit,
            .node = node,
            .kind = kind};
  }

  /// Sums a unit over each node's GPUs; returns the LocalReduce of each node.
  std::vector<TaskId> reduced(std::uint32_t unit, const std::vector<TaskId>& ready) {
    std::vector<TaskId> sums;
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      const TaskId sum = builder_.add(local_task(Kind::kLocalReduce, unit, node));
      builder_.edge(ready[node], sum);
      sums.insert(sums.end(), nodes_per_representative(), sum);
    }
    return sums;
  }

  /// Broadcasts the complete mean to each node's GPUs. In a folded graph, other nodes' tasks stand
  /// for the first node's tasks of other partitions.
  void broadcast(std::uint32_t unit, const UnitWork& work) {
    std::vector<std::vector<TaskId>>& values = values_[unit];
    for (std::uint32_t representative = 0; representative < representatives(); ++representative) {
      const TaskId last = builder_.add(local_task(Kind::kLocalBroadcast, unit, representative));
      bool waits = false;
      for (std::uint32_t node = representative; node < representative + nodes_per_representative();
           ++node) {
        for (const TaskId end : values[node]) builder_.edge(end, last);
        waits = waits || !values[node].empty();
        values[node].clear();
      }
      values[representative] = {last};
      if (!waits) builder_.edge(work.ready[representative], last);
    }
    if (!keeps_ends_) values_[unit] = sends_[unit] = std::vector<std::vector<TaskId>>(plan_.nodes);
  }

  /// Per node, the task after which a unit is complete: a gradient's Backward task, or a new Join
  /// that waits for all members of a bulk group.
  std::vector<TaskId> ready_of(std::uint32_t unit) {
    const std::vector<std::uint32_t>& members = layout_.units[unit].members;
    if (!layout_.is_group(unit)) return backward_[members.front()];
    std::vector<TaskId> ready;
    for (std::uint32_t node = 0; node < representatives(); ++node) {
      const TaskId join = builder_.add({.gradient = unit, .node = node, .kind = Kind::kJoin});
      for (const std::uint32_t member : members) builder_.edge(backward_[member][node], join);
      ready.insert(ready.end(), nodes_per_representative(), join);
    }
    return ready;
  }

  /// Chains a library's AllReduces on each node. All nodes run them one by one in the same order,
  /// that of collective_order().
  void order_collectives(TaskId first) {
    std::vector<std::vector<TaskId>> of_unit(layout_.units.size());
    for (TaskId id = first; id < builder_.size(); ++id) {
      const Task& task = builder_.task(id);
      if (task.kind == Kind::kAllReduce) of_unit[task.gradient].push_back(id);
    }
    for (const std::uint32_t unit : collective_order(layout_, plan_.pipelining)) {
      for (const TaskId id : of_unit[unit]) {
        TaskId& last = last_collective_[builder_.task(id).node];
        if (last != kNoIndex) builder_.edge(last, id);
        sorted_ = sorted_ && (last == kNoIndex || last < id);
        last = id;
      }
    }
  }

  /// Per node, the last tasks that write a unit's mean, and all Sends of the unit.
  struct Ends {
    std::vector<std::vector<TaskId>> values, sends;
  };

  void note_ends(std::uint32_t unit, TaskId first, std::size_t first_edge) {
    if (values_.empty()) return;
    Ends ends = ends_of(first, first_edge);
    values_[unit] = std::move(ends.values);
    sends_[unit] = std::move(ends.sends);
  }

  /// Ends of a unit whose tasks start at `first` and whose edges start at `first_edge`.
  Ends ends_of(TaskId first, std::size_t first_edge) const {
    Ends ends{std::vector<std::vector<TaskId>>(plan_.nodes),
              std::vector<std::vector<TaskId>>(plan_.nodes)};
    std::vector<bool> goes_on(builder_.size() - first, false);
    for (const auto& [before, after] : builder_.edges().subspan(first_edge)) {
      if (before < first || builder_.task(before).node != builder_.task(after).node) continue;
      if (builder_.task(after).kind != Kind::kSend) goes_on[before - first] = true;
    }
    for (TaskId id = first; id < builder_.size(); ++id) {
      const Task& task = builder_.task(id);
      if (task.kind == Kind::kSend) {
        ends.sends[task.node].push_back(id);
      } else if (fills_slice(task) && !goes_on[id - first]) {
        ends.values[task.node].push_back(id);
      }
    }
    return ends;
  }

  const models::Model& model_;
  const Plan& plan_;
  const Layout layout_;
  const std::vector<ForwardStep> forward_;
  GraphBuilder builder_;
  bool runs_ = false;                          // the executor runs the graph
  bool sorted_ = true;                         // ids are a topological order
  bool keeps_ends_ = false;                    // values_ and sends_ are kept for later steps
  bool averages_in_nodes_ = false;             // each node averages over its GPUs in every step
  std::vector<std::vector<TaskId>> in_nodes_;  // per unit and representative: the last mean over
                                               // its GPUs
  std::int64_t plain_steps_ = 0;               // number of plain steps still to be added
  std::vector<std::vector<std::uint32_t>> begins_, awaited_;  // per step: parts
  std::vector<TaskId> last_compute_, last_collective_;        // per node
  std::vector<std::vector<TaskId>> forwards_, backward_;      // per gradient and node
  std::vector<std::vector<std::vector<TaskId>>> values_,
      sends_;  // per unit and node; empty: not needed
};

}  // namespace

namespace {

void require_foldable(const models::Model& model, const Plan& plan, Folding folding) {
  if (folding == Folding::kNone) return;
  const Foldability verdict = foldable(model, plan);
  if (verdict.kind == Foldability::kImpossible) {
    throw std::invalid_argument("the graph cannot be folded: " + verdict.why);
  }
}

TaskGraph sharded(const models::Model& model, const Plan& plan, int steps, Folding folding) {
  if (plan.shards_in_messages() && folding == Folding::kFolded)
    require_foldable(model, plan, folding);
  return expand_sharded(model, plan, make_layout(model, plan), steps, folding);
}

/// The graph to run for one step whose shards travel in messages. Throws std::invalid_argument for
/// a library's collectives, and for several micro-steps.
TaskGraph sharded_to_run(const models::Model& model, const Plan& plan) {
  const std::string schedule = "schedule " + plan.schedule.text();
  if (!plan.shards_in_messages()) {
    throw std::invalid_argument(schedule +
                                ": a library's collectives are simulated, not run; give " +
                                "`shards_by` ring or direct");
  }
  if (model.micro_steps > 1) {
    throw std::invalid_argument(schedule + " of a model with " + std::to_string(model.micro_steps) +
                                " micro-steps can be simulated, but not run; set micro_steps to 1");
  }
  return expand_sharded(model, plan, make_layout(model, plan), 1, Folding::kNone, Purpose::kRun);
}

}  // namespace

TaskGraph expand(const models::Model& model, const Plan& plan, Folding folding) {
  if (plan.schedule.row().sharded) return sharded(model, plan, 1, folding);
  require_foldable(model, plan, folding);
  Expansion expansion(model, plan, false, folding);
  expansion.add_period();
  return std::move(expansion).take();
}

TaskGraph expand_to_run(const models::Model& model, const Plan& plan, Folding folding) {
  if (plan.schedule.row().sharded) return sharded_to_run(model, plan);
  require_foldable(model, plan, folding);
  Expansion expansion(model, plan, false, folding);
  expansion.name_operands();
  expansion.add_period();
  return std::move(expansion).take();
}

TaskGraph expand_back_to_back(const models::Model& model, const Plan& plan, int iterations,
                              Folding folding) {
  if (iterations < 1) throw std::invalid_argument("at least one iteration is needed");
  if (plan.schedule.row().sharded) return sharded(model, plan, iterations, folding);
  require_foldable(model, plan, folding);
  Expansion expansion(model, plan, true, folding);
  for (int i = 0; i < iterations; ++i) expansion.add_period();
  return std::move(expansion).take();
}

}  // namespace hipress::casync
