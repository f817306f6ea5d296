#include "casync/sharded.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "casync/topology.hpp"

namespace hipress::casync {
namespace {

/// Tasks, one per node whose tasks the graph holds; kNoIndex: no task.
using Ids = std::vector<TaskId>;

/// A layer: its unit and the times of its passes.
struct Layer {
  std::uint32_t unit = 0;
  Picoseconds forward{}, backward{};
};

class ShardedExpansion {
 public:
  ShardedExpansion(const models::Model& model, const Plan& plan, const Layout& layout,
                   Folding folding, Purpose purpose)
      : model_(model),
        plan_(plan),
        layout_(layout),
        sharding_(*layout.timetable.sharding),
        in_messages_(plan.shards_in_messages()),
        builder_(plan.nodes, layout.gradients, folding),
        none_(builder_.folded() ? 1 : plan.nodes, kNoIndex),
        computed_(none_),
        last_gather_(none_),
        last_reduction_(none_),
        last_mean_(none_),
        last_shard_(none_),
        first_use_(none_) {
    const std::uint32_t sharded = sharding_.shards(plan.nodes);
    const std::uint32_t kept = sharding_.gathers_among(plan.nodes);
    all_ = add_group(sharded, 1);
    kept_ = kept < sharded ? add_group(kept, 1) : all_;
    replicas_ = add_group(plan.nodes / sharded, sharded);
    exchanges_twice_ = plan.exchange_within > 1 && plan.exchange_within < sharded;
    if (exchanges_twice_) {
      within_ = add_group(plan.exchange_within, 1);
      between_ = add_group(sharded / plan.exchange_within, plan.exchange_within);
    }
    read_layers();
    if (purpose == Purpose::kRun) builder_.name_operands();
  }

  void add_step() {
    start_step();
    first_use_ = computed_;
    used_.clear();
    gathered_ = 0;
    for (int pass = 0; pass < model_.micro_steps; ++pass) {
      add_forward();
      add_backward();
    }
  }

  TaskGraph take() {
    TaskGraph graph = std::move(builder_).build();
    graph.mix = model_.mix;
    graph.need_places = need_places(layout_, model_);
    graph.computing = computing_of(model_, BackwardTasks::kOfSeveral);
    graph.first_factor = layout_.first_factor;
    if (in_messages_) {
      graph.first_parameters = layout_.first_parameters;
    } else {
      graph.groups = groups_;
    }
    return graph;
  }

 private:
  std::uint8_t add_group(std::uint32_t nodes, std::uint32_t stride) {
    groups_.push_back({nodes, stride});
    return static_cast<std::uint8_t>(groups_.size() - 1);
  }

  /// Lengths are differences of rounded times, so their sum is exact.
  void read_layers() {
    layers_.resize(layout_.timetable.synchronisations.size());
    for (const std::uint32_t unit : layout_.order) layers_[layout_.part_of(unit)].unit = unit;
    const std::vector<std::uint32_t> order = backward_order(model_);
    Picoseconds reached{};
    for (const std::uint32_t gradient : order) {
      const Picoseconds due = from_seconds(model_.gradients[gradient].ready_s);
      layers_[layout_.timetable.part_of[gradient]].backward += due - reached;
      reached = due;
    }
    const double backward_s = models::backward_s(model_);
    std::int64_t elements = 0, before = 0;
    for (const Layer& layer : layers_) elements += layout_.units[layer.unit].elements;
    // Forward time is split in proportion to backward times, or to elements if the model gives no
    // times.
    double share = 0;
    reached = {};
    for (Layer& layer : layers_) {
      before += layout_.units[layer.unit].elements;
      share += backward_s > 0 ? to_seconds(layer.backward) / backward_s : 0;
      const double part =
          backward_s > 0 ? share : static_cast<double>(before) / static_cast<double>(elements);
      const bool last = &layer == &layers_.back();
      const Picoseconds due = from_seconds(model_.forward_s * (last ? 1 : part));
      layer.forward = std::max(due, reached) - reached;
      reached = std::max(due, reached);
    }
  }

  /// Adds the task on every node, after the tasks `behind`.
  Ids add(Task task, std::initializer_list<const Ids*> behind) {
    Ids ids;
    for (std::uint32_t node = 0; node < none_.size(); ++node) {
      task.node = node;
      ids.push_back(builder_.add(task));
      for (const Ids* before : behind) {
        if ((*before)[node] != kNoIndex) builder_.edge((*before)[node], ids.back());
      }
    }
    return ids;
  }

  /// Adds a collective in each group. It starts on all nodes of the group when the last one is
  /// ready, and after `last`, the previous collective of its communicator.
  Ids collective(Kind kind, std::uint8_t group, std::uint32_t unit, std::int64_t bytes, Ids& last,
                 std::initializer_list<const Ids*> behind) {
    const Task task = {.amount = bytes, .gradient = unit, .kind = kind, .group = group};
    if (builder_.folded()) return last = in_order(add(task, behind), last);
    const Ids ready = add({.gradient = unit, .kind = Kind::kJoin}, behind);
    const auto [nodes, stride] = groups_[group];
    Ids joins = none_;
    for (std::uint32_t node = 0; node < none_.size(); ++node) {
      const std::uint32_t first = node / (nodes * stride) * (nodes * stride) + node % stride;
      if (first == node)
        joins[node] = builder_.add({.gradient = unit, .node = node, .kind = Kind::kJoin});
      builder_.edge(ready[node], joins[first]);
      if (last[node] != kNoIndex) builder_.edge(last[node], joins[first]);
      joins[node] = joins[first];
    }
    return last = add(task, {&joins});
  }

  Ids in_order(Ids ids, const Ids& last) {
    if (last.front() != kNoIndex) builder_.edge(last.front(), ids.front());
    return ids;
  }

  Ids compute(Picoseconds length, std::uint32_t unit, Kind kind,
              std::initializer_list<const Ids*> behind) {
    const Task task = {.amount = length.count(), .gradient = unit, .kind = kind};
    const Ids ids = add(task, behind);
    for (std::uint32_t node = 0; node < ids.size(); ++node) {
      if (computed_[node] != kNoIndex) builder_.edge(computed_[node], ids[node]);
    }
    return computed_ = ids;
  }

  /// Starts a step with the optimizer, after all reductions of the step before.
  void start_step() {
    const Picoseconds optimizer = from_seconds(model_.optimizer_s);
    computed_ = add({.amount = optimizer.count(), .gradient = layers_.front().unit},
                    {&computed_, &last_reduction_, &last_mean_, &last_shard_});
  }

  /// Algorithm of a gather; null if shards are sent as the model stores them. Also null for a
  /// gather among only some of the group's nodes, unless in half precision: these shards were
  /// decoded before forward.
  const Algorithm* gather_algorithm(const Unit& unit, std::uint8_t group) const {
    const std::int8_t index = plan_.gather_of(unit.members.front());
    const Algorithm* const algorithm = algorithm_at(plan_.algorithms, index);
    const bool decoded_before = group != all_ && algorithm != nullptr && !algorithm->half_precision;
    return decoded_before || is_stored_as(unit, model_, algorithm) ? nullptr : algorithm;
  }

  /// Tasks after which the next gather has memory: the last use of the layer that it replaces.
  const Ids& next_place() {
    const std::size_t place = gathered_++;
    return place < sharding_.in_flight ? first_use_ : used_[place - sharding_.in_flight];
  }

  UnitWork work_of(std::uint32_t unit) const {
    const Unit& what = layout_.units[unit];
    return {.unit = unit,
            .elements = what.elements,
            .partitions = what.partitions,
            .algorithm_index = what.algorithm,
            .algorithm = algorithm_at(plan_.algorithms, what.algorithm),
            .within = plan_.exchange_within,
            .rails = plan_.rails,
            .ready = {}};
  }

  /// Expands a unit by its own topology among the nodes of each group.
  Ids in_messages(std::uint32_t unit, std::uint8_t group, Ids& last,
                  std::initializer_list<const Ids*> behind) {
    return in_messages(*layout_.units[unit].topology, work_of(unit), group, last, behind);
  }

  /// Expands a unit by the given topology. On each node, it starts after `behind` and after `last`,
  /// the communicator's previous operation there. It ends there when all of the node's tasks have
  /// ended, including its sends.
  Ids in_messages(const Topology& topology, UnitWork work, std::uint8_t group, Ids& last,
                  std::initializer_list<const Ids*> behind) {
    const Task join = {.gradient = work.unit, .kind = Kind::kJoin};
    work.ready = add(join, behind);
    for (std::uint32_t node = 0; node < none_.size(); ++node) {
      if (last[node] != kNoIndex) builder_.edge(last[node], work.ready[node]);
    }
    const TaskId first = builder_.size();
    const std::size_t first_edge = builder_.edges().size();
    const auto [nodes, stride] = groups_[group];
    for (std::uint32_t node = 0; node < plan_.nodes; ++node) {
      if (node != node / (nodes * stride) * (nodes * stride) + node % stride) continue;
      work.ranks = {.first = node, .nodes = nodes, .stride = stride};
      topology.expand(builder_, work);
    }
    return last = ends_of(first, first_edge, add(join, {&work.ready}));
  }

  /// Adds a Join on every node that waits for the node's last tasks. Considers the tasks starting
  /// at `first` and the edges starting at `first_edge`.
  Ids ends_of(TaskId first, std::size_t first_edge, Ids joins) {
    const TaskId end = joins.front();
    std::vector<bool> goes_on(end - first, false);
    for (const auto& [before, after] : builder_.edges().subspan(first_edge)) {
      const bool here = before >= first && builder_.task(before).node == builder_.task(after).node;
      if (here) goes_on[before - first] = true;
    }
    for (TaskId id = first; id < end; ++id) {
      if (!goes_on[id - first]) builder_.edge(id, joins[builder_.task(id).node]);
    }
    return joins;
  }

  /// Gathers a layer after `behind`, once memory for it is free. Returns the tasks after which the
  /// layer can be used.
  Ids gather(const Layer& layer, std::uint8_t group, bool for_forward, const Ids& behind) {
    const Ids& place = next_place();
    const std::uint32_t nodes = groups_[group].nodes;
    if (nodes == 1) return place;
    if (in_messages_) {
      const auto [forward, backward] = layout_.parameters[layout_.part_of(layer.unit)];
      return in_messages(for_forward ? forward : backward, group, last_gather_, {&place, &behind});
    }
    const Unit& unit = layout_.units[layer.unit];
    const Algorithm* const algorithm = gather_algorithm(unit, group);
    if (algorithm == nullptr) {
      return collective(Kind::kAllGather, group, layer.unit, stored_bytes(unit, model_, nodes),
                        last_gather_, {&place, &behind});
    }
    const std::int64_t elements = shard_elements(unit, model_, nodes);
    Task codec = {.amount = elements,
                  .gradient = layer.unit,
                  .kind = Kind::kEncode,
                  .algorithm = plan_.gather_of(unit.members.front())};
    const Ids encoded = add(codec, {&place, &behind});
    const Ids gathered =
        collective(Kind::kAllGather, group, layer.unit, algorithm->message_bytes(elements) * nodes,
                   last_gather_, {&encoded});
    if (algorithm->half_precision) return gathered;
    codec.kind = Kind::kDecode;
    codec.amount = elements * nodes;
    return add(codec, {&gathered});
  }

  Ids& last_reduction() {
    return sharding_.separate_communicators ? last_reduction_ : last_gather_;
  }

  void add_forward() {
    // Parts that stay whole are in use until the backward passes of the previous micro-step end, so
    // their gathers wait for these.
    const Ids behind = sharding_.stays_whole() ? computed_ : none_;
    for (const Layer& layer : layers_) {
      const Ids whole = gather(layer, all_, true, behind);
      used_.push_back(compute(layer.forward, layer.unit, Kind::kForward, {&whole}));
    }
  }

  void add_backward() {
    const bool stays = sharding_.stays_whole();
    std::vector<Ids> whole(layers_.size(), none_);
    const auto gather_again = [&](std::size_t i, const Ids& behind) {
      if (!stays) whole[i] = gather(layers_[i], kept_, false, behind);
    };
    // With in_flight = 1, the next gather waits until the current layer's memory is free.
    const bool ahead = sharding_.prefetch == Prefetch::kPre && sharding_.in_flight > 1;
    const bool behind_reduction = sharding_.prefetch == Prefetch::kNone;
    gather_again(layers_.size() - 1, ahead ? none_ : computed_);
    Ids before_last = none_, last = none_;  // reductions
    for (std::size_t i = layers_.size(); i-- > 0;) {
      if (ahead && i > 0) gather_again(i - 1, none_);
      const Ids done =
          compute(layers_[i].backward, layers_[i].unit, Kind::kBackward, {&whole[i], &before_last});
      if (!stays) used_.push_back(done);
      if (!ahead && !behind_reduction && i > 0) gather_again(i - 1, done);
      before_last = std::exchange(last, reduce(layers_[i], done, last));
      if (behind_reduction && i > 0) gather_again(i - 1, done);
    }
    last_shard_ = last;
  }

  /// Reduce-scatters a layer's gradient, after `last`: each node ends with one shard of the mean.
  Ids reduce(const Layer& layer, const Ids& ready, const Ids& last) {
    const Unit& unit = layout_.units[layer.unit];
    const Algorithm* const algorithm = algorithm_at(plan_.algorithms, unit.algorithm);
    const std::uint32_t nodes = groups_[all_].nodes;
    const std::int64_t elements = shard_elements(unit, model_, nodes);
    Ids shard = ready;
    if (in_messages_ && nodes > 1) {
      shard = in_messages(layer.unit, all_, last_reduction(), {&ready, &last});
    } else if (nodes > 1 && (algorithm == nullptr || algorithm->half_precision)) {
      const std::int64_t bytes = algorithm == nullptr ? stored_bytes(unit, model_, nodes)
                                                      : algorithm->message_bytes(elements) * nodes;
      shard = collective(Kind::kReduceScatter, all_, layer.unit, bytes, last_reduction(),
                         {&ready, &last});
    } else if (exchanges_twice_) {
      shard = exchange(layer, within_, elements * groups_[between_].nodes, {&ready, &last});
      shard = exchange(layer, between_, elements, {&shard});
    } else if (nodes > 1) {
      shard = exchange(layer, all_, elements, {&ready, &last});
    }
    if (groups_[replicas_].nodes == 1) return shard;
    if (in_messages_) {
      sum_over_groups(layer, shard);
    } else {
      add_mean_over_groups(layer, shard);
    }
    return shard;
  }

  /// Encodes a message of `elements` for every node of the group, exchanges them by an AllToAll,
  /// and adds up the received ones.
  Ids exchange(const Layer& layer, std::uint8_t group, std::int64_t elements,
               std::initializer_list<const Ids*> behind) {
    const std::uint32_t nodes = groups_[group].nodes;
    const Unit& unit = layout_.units[layer.unit];
    const Algorithm& algorithm = plan_.algorithms[static_cast<std::size_t>(unit.algorithm)];
    Task codec = {.amount = elements * nodes,
                  .gradient = layer.unit,
                  .kind = Kind::kEncode,
                  .algorithm = unit.algorithm};
    const Ids encoded = add(codec, behind);
    const Ids arrived =
        collective(Kind::kAllToAll, group, layer.unit, algorithm.message_bytes(elements) * nodes,
                   last_reduction(), {&encoded});
    codec.kind = Kind::kDecode;
    codec.flags = kAccumulate;
    return add(codec, {&arrived});
  }

  /// Sums a shard over groups, in messages. The reduction within groups has divided by N.
  void sum_over_groups(const Layer& layer, const Ids& shard) {
    UnitWork work = work_of(layer.unit);
    work.divided = groups_[all_].nodes > 1;
    if (work.algorithm != nullptr && !work.algorithm->half_precision) {
      work.algorithm = nullptr;
      work.algorithm_index = kRaw;
    }
    const auto by = [&](Operation operation, const Ids& behind) {
      return in_messages(find_topology(plan_.shards_by, operation), work, replicas_, last_mean_,
                         {&behind});
    };
    by(Operation::kGather, by(Operation::kReduceScatter, shard));
  }

  /// Averages a shard over groups by a ReduceScatter and an AllGather, in half precision or raw.
  void add_mean_over_groups(const Layer& layer, const Ids& shard) {
    const std::uint32_t nodes = groups_[replicas_].nodes;
    const Unit& unit = layout_.units[layer.unit];
    const std::uint32_t shards = groups_[all_].nodes;
    const Algorithm* const algorithm = algorithm_at(plan_.algorithms, unit.algorithm);
    const bool halves = algorithm != nullptr && algorithm->half_precision;
    const std::int64_t elements = shard_elements(unit, model_, shards);
    std::int64_t bytes =
        halves ? algorithm->message_bytes(elements) : stored_bytes(unit, model_, shards) / shards;
    bytes = (bytes + nodes - 1) / nodes * nodes;
    const Ids sum =
        collective(Kind::kReduceScatter, replicas_, layer.unit, bytes, last_mean_, {&shard});
    collective(Kind::kAllGather, replicas_, layer.unit, bytes, last_mean_, {&sum});
  }

  const models::Model& model_;
  const Plan& plan_;
  const Layout& layout_;
  const Sharding& sharding_;
  const bool in_messages_;
  GraphBuilder builder_;
  const Ids none_;
  std::vector<Layer> layers_;  // in the order of forward
  std::vector<Group> groups_;
  std::uint8_t all_ = 0, kept_ = 0, replicas_ = 0, within_ = 0, between_ = 0;  // places in groups_
  bool exchanges_twice_ = false;  // exchanges among neighbours, then between groups of neighbours
  Ids computed_;
  Ids last_gather_, last_reduction_, last_mean_;  // last collective of each communicator
  Ids last_shard_;                                // the last reduction within groups
  Ids first_use_;                                 // tasks before the first layer of a step
  std::size_t gathered_ = 0;                      // number of gathers in all steps
  std::vector<Ids> used_;  // the last tasks that use each gathered layer, in the order of gathers
};

}  // namespace

std::int64_t shard_elements(const Unit& unit, const models::Model& model, std::uint32_t nodes) {
  std::int64_t elements = 0;
  for (const std::uint32_t g : unit.members) {
    elements += (model.gradients[g].elements + nodes - 1) / nodes;
  }
  return elements;
}

std::int64_t stored_bytes(const Unit& unit, const models::Model& model, std::uint32_t nodes) {
  std::int64_t bytes = 0;
  for (const std::uint32_t g : unit.members) {
    const models::Gradient& gradient = model.gradients[g];
    bytes += (gradient.elements + nodes - 1) / nodes * nodes * models::size_of(gradient.dtype);
  }
  return bytes;
}

TaskGraph expand_sharded(const models::Model& model, const Plan& plan, const Layout& layout,
                         int steps, Folding folding, Purpose purpose) {
  ShardedExpansion expansion(model, plan, layout, folding, purpose);
  for (int step = 0; step < steps; ++step) expansion.add_step();
  return std::move(expansion).take();
}

}  // namespace hipress::casync
