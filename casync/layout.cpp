#include "casync/layout.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "casync/topology.hpp"
#include "io/error.hpp"

namespace hipress::casync {
namespace {

std::string quoted(const models::Model& model, std::uint32_t gradient) {
  return "gradient " + io::quote(model.gradients[gradient].name);
}

constexpr std::int64_t kValueBytes = sizeof(float);

class LayoutMaker {
 public:
  LayoutMaker(const models::Model& model, const Plan& plan) : model_(model), plan_(plan) {}

  Layout take() {
    add_gradients();
    if (is_sharded()) {
      require_shards();
      group_by_part();
    } else {
      group_by_hand();
      if (plan_.bulk.threshold_bytes > 0) group_by_rule();
    }
    add_groups();
    layout_.first_parameters = static_cast<std::uint32_t>(layout_.units.size());
    if (is_sharded() && plan_.shards_in_messages()) add_parameters();
    layout_.first_factor = static_cast<std::uint32_t>(layout_.units.size());
    add_factors();
    for (std::uint32_t unit = 0; unit < layout_.first_parameters; ++unit) {
      for (const std::uint32_t member : layout_.units[unit].members) {
        layout_.unit_of[member] = unit;
      }
    }
    return std::move(layout_);
  }

 private:
  void add_gradients() {
    if (plan_.decisions.size() != model_.gradients.size()) {
      throw std::invalid_argument("the plan decides " + std::to_string(plan_.decisions.size()) +
                                  " gradients, the model has " +
                                  std::to_string(model_.gradients.size()));
    }
    if (plan_.nodes == 0) throw std::invalid_argument("a plan needs at least one node");
    if (plan_.root >= plan_.nodes) {
      throw std::invalid_argument("root " + std::to_string(plan_.root) +
                                  " is not one of the plan's " + std::to_string(plan_.nodes) +
                                  " nodes, which count from 0");
    }
    pair_ = topologies_of(plan_.topology, plan_.raw_topology);
    const Topology& topology = *pair_.encoded;
    const Topology& raw = *pair_.raw;
    if (raw.form == Topology::Form::kEncoded) {
      throw std::invalid_argument("raw gradients cannot use " + std::string(raw.name) +
                                  ", which sends only encoded ones; take " +
                                  std::string(raw.dense) + " for them");
    }
    if (raw.operation != topology.operation) {
      throw std::invalid_argument("raw gradients use " + std::string(raw.name) + " (" +
                                  to_string(raw.operation) + "), others by " +
                                  std::string(topology.name) + " (" +
                                  to_string(topology.operation) + ")");
    }
    layout_.timetable = plan_.schedule.timetable(model_);
    layout_.gradients = static_cast<std::uint32_t>(model_.gradients.size());
    layout_.unit_of.resize(model_.gradients.size());
    position_.resize(model_.gradients.size());
    order_ = backward_order(model_);
    for (std::uint32_t place = 0; place < order_.size(); ++place) position_[order_[place]] = place;
    for (std::uint32_t g = 0; g < model_.gradients.size(); ++g) {
      add_gradient(g);
    }
  }

  void add_gradient(std::uint32_t g) {
    const models::Gradient& gradient = model_.gradients[g];
    const Decision& decision = plan_.decisions[g];
    if (decision.partitions < 1) {
      throw std::invalid_argument(quoted(model_, g) + ": K must be at least 1, got " +
                                  std::to_string(decision.partitions));
    }
    const Algorithm* const algorithm = algorithm_of(decision.algorithm);
    if (is_additive(algorithm)) require_factors(g, *algorithm);
    const Factors factors = factors_of(algorithm, gradient);
    const Topology& topology = shards_in_messages() ? reduction_of(algorithm) : pair_.of(algorithm);
    const bool whole = is_sharded() || topology.form == Topology::Form::kWhole;
    if (is_sharded()) {
      require_messages_of_shards(g);
    } else if (whole && algorithm != nullptr && factors.empty()) {
      require_half_precision(g, topology);
    }
    if (!is_sharded() && algorithm != nullptr && algorithm->own_optimizer) {
      require_encoded(g, topology);
    }
    layout_.units.push_back(
        {.name = gradient.name,
         .elements = gradient.elements,
         .algorithm = is_stored_so(gradient, algorithm) ? kRaw : decision.algorithm,
         .partitions = shards_in_messages() ? static_cast<std::int32_t>(plan_.nodes)
                       : whole              ? 1
                                            : decision.partitions,
         .topology = &topology,
         .members = {g},
         .ready_s = gradient.ready_s,
         .factors = static_cast<std::uint32_t>(factors.size())});
  }

  bool shards_in_messages() const { return is_sharded() && plan_.shards_in_messages(); }

  /// Topology of reductions. Raw values and half precision take the plan's. Other codecs take one
  /// with few encodes: `direct` encodes once, at the source; `two_level` once more, after the sum
  /// of the first level.
  const Topology& reduction_of(const Algorithm* algorithm) const {
    const bool once = algorithm != nullptr && !algorithm->half_precision;
    const std::uint32_t shards = layout_.timetable.sharding->shards(plan_.nodes);
    const bool in_two = once && plan_.exchange_within > 1 && plan_.exchange_within < shards;
    const std::string shards_by = in_two ? "two_level" : once ? "direct" : plan_.shards_by;
    return find_topology(shards_by, Operation::kReduceScatter);
  }

  /// Adds a unit for each gather of a part's parameters.
  void add_parameters() {
    const Sharding& sharding = *layout_.timetable.sharding;
    const std::uint32_t all = sharding.shards(plan_.nodes);
    const auto add = [&](std::uint32_t unit, std::uint32_t shards, const std::string& when) {
      Unit parameters = layout_.units[unit];
      parameters.name += " (parameters, " + when + ")";
      const std::int8_t index = plan_.gather_of(parameters.members.front());
      const Algorithm* const algorithm = algorithm_of(index);
      const bool decoded_before =
          shards < all && algorithm != nullptr && !algorithm->half_precision;
      parameters.algorithm = decoded_before ? kRaw : index;
      parameters.partitions = static_cast<std::int32_t>(shards);
      parameters.topology = &find_topology(plan_.shards_by, Operation::kGather);
      layout_.units.push_back(std::move(parameters));
      return static_cast<std::uint32_t>(layout_.units.size() - 1);
    };
    layout_.parameters.resize(layout_.timetable.synchronisations.size());
    for (const std::uint32_t unit : layout_.order) {
      Layout::Parameters& of_part = layout_.parameters[layout_.part_of(unit)];
      of_part.forward = add(unit, all, "forward");
      of_part.backward = sharding.stays_whole()
                             ? kNoIndex
                             : add(unit, sharding.gathers_among(plan_.nodes), "backward");
    }
  }

  /// True if a library's collective sends the gradient's shards in half precision as they are
  /// stored. In messages, they are cast first.
  bool is_stored_so(const models::Gradient& gradient, const Algorithm* algorithm) const {
    return is_sharded() && !plan_.shards_in_messages() && algorithm != nullptr &&
           algorithm->half_precision && gradient.dtype != models::Dtype::kFloat32;
  }

  bool is_sharded() const { return layout_.timetable.sharding.has_value(); }

  /// Requires group sizes that divide the number of nodes, one GPU per node and no bulk groups.
  void require_shards() const {
    const Sharding& sharding = *layout_.timetable.sharding;
    const auto divide = [&](std::uint32_t part, std::uint32_t whole, const std::string& what) {
      if (part == 0 || whole % part == 0) return;
      throw std::invalid_argument("schedule " + plan_.schedule.text() + ": " + what + "=" +
                                  std::to_string(part) + " does not divide " +
                                  std::to_string(whole) + " nodes; give a divisor of that");
    };
    const std::uint32_t shards = sharding.shards(plan_.nodes);
    divide(sharding.nodes, plan_.nodes, "shard");
    divide(sharding.kept_among, shards, "reshard");
    divide(plan_.exchange_within, shards, "exchange_within");
    if (plan_.shards_in_messages()) find_topology(plan_.shards_by, Operation::kGather);
    if (plan_.gpus_per_node > 1) {
      throw std::invalid_argument("schedule " + plan_.schedule.text() +
                                  ": every GPU has shards of its own; " + gpus_as_nodes());
    }
    if (plan_.bulk.threshold_bytes > 0 || !plan_.bulk_groups.empty()) {
      throw std::invalid_argument("schedule " + plan_.schedule.text() +
                                  ": a layer is sent as one; leave bulk groups out");
    }
  }

  /// Requires codecs that encode each shard on its own, without factors or momentum.
  void require_messages_of_shards(std::uint32_t g) const {
    for (const std::int8_t index : {plan_.decisions[g].algorithm, plan_.gather_of(g)}) {
      const Algorithm* const algorithm = algorithm_of(index);
      if (algorithm == nullptr || (!algorithm->is_additive() && !algorithm->own_optimizer))
        continue;
      throw std::invalid_argument(
          quoted(model_, g) + " cannot be compressed with " + algorithm->name + " by schedule " +
          plan_.schedule.text() +
          ": it cannot encode shards independently of each other; take another algorithm");
    }
  }

  /// Makes each layer one unit.
  void group_by_part() {
    layers_ = layers_of(model_).names;
    std::vector<std::vector<std::uint32_t>> parts(layout_.timetable.synchronisations.size());
    for (const std::uint32_t g : order_) parts[part_of(g)].push_back(g);
    for (std::vector<std::uint32_t>& part : parts) {
      send_types_alike(part);
      require_alike(part);
      for (const std::uint32_t g : part) layout_.units[g].members.clear();
      close(std::move(part));
    }
  }

  /// Gives one algorithm to a layer with gradients of several types. Gradients that are stored in
  /// half precision, and sent raw or in half precision, take the algorithm of the layer's other
  /// gradients if that is half precision or raw; in messages only if it is raw, since a cast to one
  /// type would change the values of the others. Without other gradients, they are sent raw if
  /// their algorithms differ.
  void send_types_alike(const std::vector<std::uint32_t>& part) {
    const auto is_stored = [&](std::uint32_t g) {
      const Algorithm* const algorithm = algorithm_of(plan_.decisions[g].algorithm);
      return model_.gradients[g].dtype != models::Dtype::kFloat32 &&
             (algorithm == nullptr || algorithm->half_precision);
    };
    const auto other = std::ranges::find_if_not(part, is_stored);
    std::int8_t index = kRaw;
    if (other != part.end()) {
      index = layout_.units[*other].algorithm;
    } else if (std::ranges::all_of(part, [&](std::uint32_t g) {
                 return layout_.units[g].algorithm == layout_.units[part.front()].algorithm;
               })) {
      return;
    }
    const Algorithm* const algorithm = algorithm_of(index);
    const bool may_be = shards_in_messages() ? algorithm == nullptr
                                             : algorithm == nullptr || algorithm->half_precision;
    if (!may_be) return;
    for (const std::uint32_t g : part) {
      if (is_stored(g)) layout_.units[g].algorithm = index;
    }
  }

  void require_alike(const std::vector<std::uint32_t>& part) const {
    const auto said = [&](std::uint32_t one) {
      return std::pair(layout_.units[one].algorithm, plan_.gather_of(one));
    };
    for (const std::uint32_t g : part) {
      if (said(part.front()) == said(g)) continue;
      throw std::invalid_argument(
          quoted(model_, g) + " and " + quoted(model_, part.front()) +
          " are of one layer, and compressed differently; decide the same for both");
    }
  }

  const Algorithm* algorithm_of(std::int8_t index) const {
    return algorithm_at(plan_.algorithms, index);
  }

  /// Remedy for plans that do not support several GPUs per node.
  std::string gpus_as_nodes() const {
    return "plan for one GPU per node, `nnodes` " +
           std::to_string(std::uint64_t{plan_.nodes} * plan_.gpus_per_node) +
           " with `gpus_per_node` 1";
  }

  void require_factors(std::uint32_t g, const Algorithm& algorithm) const {
    const auto refuse = [&](const std::string& why) {
      throw std::invalid_argument(quoted(model_, g) + " cannot be compressed with " +
                                  algorithm.name + ": " + why);
    };
    const std::vector<std::int64_t> shape = shape_of(model_.gradients[g]);
    const std::string refusal = algorithm.refusal ? algorithm.refusal(shape) : std::string();
    if (!refusal.empty()) refuse(refusal + "; leave it raw");
    if (pair_.raw->operation != Operation::kMean) {
      refuse("its factors are averaged, and " + std::string(pair_.raw->name) + " does not average");
    }
    if (plan_.gpus_per_node > 1) {
      refuse("the GPUs of a node would each have a part of it; " + gpus_as_nodes());
    }
    for (const Algorithm::Factor& factor : algorithm.stages(shape)) {
      if (!factor.additive) refuse("its messages cannot be averaged as they travel");
    }
  }

  void require_half_precision(std::uint32_t g, const Topology& topology) const {
    const Algorithm& algorithm =
        plan_.algorithms.at(static_cast<std::size_t>(plan_.decisions[g].algorithm));
    if (algorithm.half_precision) return;
    throw std::invalid_argument(
        quoted(model_, g) + " is compressed with " + algorithm.name + ", but " +
        std::string(topology.name) +
        " adds gradients as they travel, which fp16, bf16 and raw ones allow; take ps or ring, one "
        "of these algorithms, or leave the gradient raw");
  }

  void require_encoded(std::uint32_t g, const Topology& topology) const {
    if (topology.form == Topology::Form::kEncoded || plan_.nodes == 1) return;
    const Algorithm& algorithm =
        plan_.algorithms.at(static_cast<std::size_t>(plan_.decisions[g].algorithm));
    throw std::invalid_argument(
        quoted(model_, g) + " is compressed with " + algorithm.name +
        ", an optimizer of its own, which has to see every node's gradient once, but " +
        std::string(topology.name) +
        " adds gradients before it encodes them: take allgather, or set the momentum to 0");
  }

  void group_by_hand() {
    for (const std::vector<std::uint32_t>& group : plan_.bulk_groups) {
      std::vector<std::uint32_t> members = group;
      for (const std::uint32_t g : members) {
        if (g >= layout_.gradients) {
          throw std::invalid_argument("a bulk group holds gradient " + std::to_string(g) +
                                      ", the model has " + std::to_string(layout_.gradients));
        }
        if (layout_.units[g].members.empty()) {
          throw std::invalid_argument(quoted(model_, g) + " is in a bulk group twice");
        }
        if (layout_.units[g].algorithm != layout_.units[members.front()].algorithm) {
          throw std::invalid_argument(
              quoted(model_, g) + " cannot be in a bulk group with " +
              quoted(model_, members.front()) +
              ": they are compressed differently; decide the same for both");
        }
        if (part_of(g) != part_of(members.front())) {
          throw std::invalid_argument(
              quoted(model_, g) + " cannot be in a bulk group with " +
              quoted(model_, members.front()) + ": schedule " + plan_.schedule.text() +
              " synchronises them in different steps; put them into groups of their own");
        }
        layout_.units[g].members.clear();
      }
      close(std::move(members));
    }
  }

  std::uint32_t part_of(std::uint32_t g) const { return layout_.timetable.part_of[g]; }

  /// Forms groups by Plan::bulk within each part: gradients of different steps cannot share one.
  void group_by_rule() {
    std::vector<std::vector<std::uint32_t>> left;  // gradients outside groups made by hand, per
                                                   // part
    for (const std::uint32_t g : order_) {
      if (layout_.units[g].members.empty()) continue;
      left.resize(std::max<std::size_t>(left.size(), part_of(g) + 1));
      left[part_of(g)].push_back(g);
    }
    for (const std::vector<std::uint32_t>& of_part : left) group_by_rule(of_part);
  }

  void group_by_rule(const std::vector<std::uint32_t>& left) {
    std::vector<Groupable> gradients;
    for (const std::uint32_t g : left) {
      const std::int8_t algorithm = layout_.units[g].algorithm;
      gradients.push_back(groupable(model_.gradients[g], algorithm, algorithm_of(algorithm)));
    }
    const std::vector<std::uint32_t> last = bulk_groups(plan_.bulk, gradients);
    std::vector<std::vector<std::uint32_t>> groups(left.size());
    for (std::size_t place = 0; place < left.size(); ++place) {
      layout_.units[left[place]].members.clear();
      groups[last[place]].push_back(left[place]);
    }
    for (std::vector<std::uint32_t>& members : groups) close(std::move(members));
  }

  /// Closes a bulk group. A group of one gradient becomes that gradient's unit instead.
  void close(std::vector<std::uint32_t> members) {
    std::sort(members.begin(), members.end(),
              [&](std::uint32_t a, std::uint32_t b) { return position_[a] < position_[b]; });
    if (members.size() == 1) {
      layout_.units[members.front()].members = members;
    } else if (!members.empty()) {
      groups_.push_back(std::move(members));
    }
  }

  /// Adds groups in the order of completion, which is strict: their last members differ.
  void add_groups() {
    std::sort(groups_.begin(), groups_.end(), [&](const auto& a, const auto& b) {
      return position_[a.back()] < position_[b.back()];
    });
    std::vector<std::uint32_t> completed_by(layout_.gradients);
    std::iota(completed_by.begin(), completed_by.end(), 0u);
    for (std::vector<std::uint32_t>& members : groups_) {
      completed_by[members.back()] = static_cast<std::uint32_t>(layout_.units.size());
      layout_.units.push_back(group(std::move(members)));
    }
    for (const std::uint32_t g : order_) {
      if (!layout_.units[completed_by[g]].members.empty()) {
        layout_.order.push_back(completed_by[g]);
      }
    }
  }

  Unit group(std::vector<std::uint32_t> members) const {
    Unit unit = layout_.units[members.front()];
    unit.name = "bulk" + std::to_string(layout_.units.size() - layout_.gradients);
    unit.elements = 0;
    for (const std::uint32_t g : members) unit.elements += model_.gradients[g].elements;
    if (is_sharded()) {
      unit.name = layers_[part_of(members.front())];
    } else if (unit.factors == 0) {
      unit.elements = group_elements(unit.elements, plan_.nodes);
    }
    const bool whole = (is_sharded() && !plan_.shards_in_messages()) ||
                       unit.topology->form == Topology::Form::kWhole;
    unit.partitions = whole ? 1 : static_cast<std::int32_t>(plan_.nodes);
    unit.ready_s = model_.gradients[members.back()].ready_s;
    unit.members = std::move(members);
    return unit;
  }

  void add_factors() {
    for (const std::uint32_t index : layout_.order) {
      layout_.units[index].first_factor = static_cast<std::uint32_t>(layout_.units.size());
      Factors factors;
      for (const std::uint32_t g : layout_.units[index].members) {
        join(factors,
             factors_of(algorithm_of(layout_.units[index].algorithm), model_.gradients[g]));
      }
      for (std::uint32_t stage = 0; stage < factors.size(); ++stage) {
        const Unit& owner = layout_.units[index];
        layout_.factors.push_back(factors[stage].factor(index, stage));
        layout_.units.push_back({.name = factor_name(owner.name, stage),
                                 .elements = factors[stage].most_in(owner.partitions),
                                 .partitions = owner.partitions,
                                 .topology = owner.topology,
                                 .members = {},
                                 .ready_s = owner.ready_s});
      }
    }
  }

  const models::Model& model_;
  const Plan& plan_;
  TopologyPair pair_;
  Layout layout_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> position_;  // per gradient: place in order_
  std::vector<std::vector<std::uint32_t>> groups_;
  std::vector<std::string> layers_;  // names of the parts of a sharded schedule
};

}  // namespace

std::vector<std::uint32_t> Layout::carried(std::uint32_t unit) const {
  const Unit& what = units[unit];
  if (what.factors == 0) return {unit};
  std::vector<std::uint32_t> carried(what.factors);
  std::iota(carried.begin(), carried.end(), what.first_factor);
  return carried;
}

std::vector<std::uint32_t> Layout::owners() const {
  std::vector<std::uint32_t> owners;
  for (const Factor& factor : factors) {
    if (factor.stage == 0) owners.push_back(factor.unit);
  }
  return owners;
}

Layout make_layout(const models::Model& model, const Plan& plan) {
  return LayoutMaker(model, plan).take();
}

Groupable groupable(const models::Gradient& gradient, std::int8_t algorithm,
                    const Algorithm* what) {
  Groupable groupable{.ready = from_seconds(gradient.ready_s),
                      .bytes = gradient.elements * models::size_of(gradient.dtype),
                      .algorithm = algorithm};
  const Factors factors = factors_of(what, gradient);
  if (!factors.empty()) groupable.bytes = 0;
  for (const FactorSums& factor : factors) groupable.bytes += factor.values * kValueBytes;
  return groupable;
}

std::vector<std::uint32_t> bulk_groups(const Aggregation& rule,
                                       std::span<const Groupable> gradients) {
  /// A group that more gradients may join.
  struct OpenGroup {
    std::uint32_t first = kNoIndex;  ///< place of its first member
    std::int64_t bytes = 0;
  };
  constexpr std::size_t kAlgorithms = 256;
  std::array<OpenGroup, kAlgorithms> open;
  std::vector<std::uint32_t> first(gradients.size()), last(gradients.size());
  for (std::uint32_t place = 0; place < gradients.size(); ++place) {
    const Groupable& gradient = gradients[place];
    first[place] = last[place] = place;
    if (gradient.bytes >= rule.threshold_bytes) continue;
    OpenGroup& group = open[static_cast<std::uint8_t>(gradient.algorithm)];
    const bool joins = group.first != kNoIndex &&
                       !(rule.wait && gradient.ready - gradients[group.first].ready > *rule.wait) &&
                       !(rule.limit_bytes && group.bytes + gradient.bytes > *rule.limit_bytes);
    if (!joins) group = {.first = place};
    group.bytes += gradient.bytes;
    first[place] = group.first;
    last[group.first] = place;
  }
  for (std::uint32_t place = 0; place < first.size(); ++place) last[place] = last[first[place]];
  return last;
}

std::int64_t group_elements(std::int64_t elements, std::uint32_t nodes) {
  return round_up(elements, kSliceWord * nodes);
}

bool is_stored_as(const Unit& unit, const models::Model& model, const Algorithm* algorithm) {
  return algorithm != nullptr && std::ranges::all_of(unit.members, [&](std::uint32_t g) {
           return models::cast_of(model.gradients[g].dtype) == algorithm->name;
         });
}

std::vector<std::string> unit_names(const Layout& layout) {
  std::vector<std::string> names;
  for (const Unit& unit : layout.units) names.push_back(unit.name);
  return names;
}

std::vector<std::uint32_t> need_places(const Layout& layout, const models::Model& model) {
  std::vector<std::uint32_t> places(layout.units.size(), 0);
  const std::vector<std::uint32_t> order = backward_order(model);
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    places[layout.unit_of[order[place]]] = place;
  }
  for (std::uint32_t unit = layout.first_factor; unit < layout.units.size(); ++unit) {
    places[unit] = places[layout.owner(unit)];
  }
  return places;
}

std::vector<std::uint32_t> collective_order(const Layout& layout, bool pipelining) {
  struct Placed {
    std::uint32_t place, stage, unit;
    auto key() const { return std::tuple(place, stage, unit); }
  };
  std::vector<Placed> placed;
  for (std::uint32_t place = 0; place < layout.order.size(); ++place) {
    std::uint32_t stage = 0;
    for (const std::uint32_t unit : layout.carried(layout.order[place])) {
      placed.push_back({pipelining ? place + stage : place, stage, unit});
      ++stage;
    }
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.key() < b.key(); });
  std::vector<std::uint32_t> order;
  for (const Placed& one : placed) order.push_back(one.unit);
  return order;
}

std::vector<Member> places(const Unit& unit, const models::Model& model) {
  std::vector<Member> members;
  std::int64_t first = 0;
  for (const std::uint32_t gradient : unit.members) {
    const std::int64_t elements = model.gradients[gradient].elements;
    members.push_back({gradient, first, elements});
    first += elements;
  }
  return members;
}

std::vector<FactorPart> factor_parts(const Layout& layout, std::uint32_t factor,
                                     const models::Model& model, const Plan& plan) {
  const Factor& what = layout.factors[factor - layout.first_factor];
  const Unit& owner = layout.units[what.unit];
  const Algorithm& algorithm = plan.algorithms[static_cast<std::size_t>(owner.algorithm)];
  std::vector<FactorPart> parts;
  std::int64_t first = 0;
  for (const std::uint32_t g : owner.members) {
    const std::int64_t values = factors_of(&algorithm, model.gradients[g]).at(what.stage).values;
    parts.push_back({first, values});
    first = round_up(first + values, kFactorAlignment);
  }
  return parts;
}

}  // namespace hipress::casync
