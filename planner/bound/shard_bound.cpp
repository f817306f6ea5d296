#include "planner/bound/shard_bound.hpp"

#include <algorithm>
#include <vector>

#include "casync/sharded.hpp"
#include "sim/works.hpp"

namespace hipress::planner {
namespace {

using casync::Kind;

/// Lower bounds of a layer's exchange: its duration, and its time on both networks.
struct Least {
  double end_s = 0;
  double between_s = 0, within_s = 0;

  void also(const Least& other) {
    end_s += other.end_s;
    between_s += other.between_s;
    within_s += other.within_s;
  }
  void or_else(const Least& other) {
    end_s = std::min(end_s, other.end_s);
    between_s = std::min(between_s, other.between_s);
    within_s = std::min(within_s, other.within_s);
  }
};

class ShardBound {
 public:
  ShardBound(const Problem& problem, const casync::Plan& plan)
      : problem_(problem),
        plan_(plan),
        layout_(casync::make_layout(problem.model, plan)),
        sharding_(*layout_.timetable.sharding),
        costs_(problem.machines->profile, plan.algorithms),
        works_(costs_, problem.machines->cluster, plan.nodes),
        shards_(sharding_.shards(plan.nodes)) {}

  double step_s(std::span<const std::int8_t> gathers, std::span<const std::int8_t> reductions,
                std::span<const std::uint32_t> exchanges) const {
    const models::Model& model = problem_.model;
    const std::vector<double>& speeds = problem_.machines->cluster.compute_speed;
    const double compute_s = (models::before_backward_s(model) + models::backward_s(model)) /
                             *std::min_element(speeds.begin(), speeds.end());
    Least all;
    double first_s = 0;  // gather and reduction of the first layer, before and after computation
    for (const std::uint32_t index : layout_.order) {
      const casync::Unit& unit = layout_.units[index];
      const Least gather = gathered(unit, gathers, {shards_, 1});
      const Least reduced = reduction(unit, reductions, exchanges);
      if (layout_.part_of(index) == 0) first_s = gather.end_s + reduced.end_s;
      all.also(gather);
      all.also(reduced);
      if (!sharding_.stays_whole()) {
        all.also(gathered(unit, gathers, {sharding_.gathers_among(plan_.nodes), 1}));
      }
    }
    return std::max(
        {compute_s + first_s, model.micro_steps * all.between_s, model.micro_steps * all.within_s});
  }

 private:
  Least collective(Kind kind, const casync::Group& group, std::int64_t bytes) const {
    if (group.nodes == 1) return {};
    const casync::Task task{.amount = bytes, .kind = kind};
    const costs::GroupNetwork network = costs::group_network(
        problem_.machines->cluster, group.nodes, group.stride, sim::Works::pattern_of(task));
    const auto [on_link, latency] = works_.of_group(task, group.nodes, network.link);
    const double link_s = casync::to_seconds(casync::Picoseconds(on_link));
    const double end_s = casync::to_seconds(casync::Picoseconds(on_link + latency));
    if (problem_.machines->cluster.of_machine) {
      const auto [within, between] = works_.port_shares(task, group.nodes, network.link);
      return {end_s, between * link_s, within * link_s};
    }
    return network.within_host ? Least{end_s, 0, link_s} : Least{end_s, link_s, 0};
  }

  Least gathered(const casync::Unit& unit, std::span<const std::int8_t> algorithms,
                 const casync::Group& group) const {
    Least least = collective(Kind::kAllGather, group,
                             casync::stored_bytes(unit, problem_.model, group.nodes));
    for (const std::int8_t algorithm : algorithms) {
      least.or_else(collective(Kind::kAllGather, group, message(unit, algorithm, group.nodes)));
    }
    return least;
  }

  /// Bytes of the encoded shards of all nodes together.
  std::int64_t message(const casync::Unit& unit, std::int8_t algorithm, std::uint32_t nodes) const {
    const std::int64_t elements = casync::shard_elements(unit, problem_.model, nodes);
    return plan_.algorithms[static_cast<std::size_t>(algorithm)].message_bytes(elements) * nodes;
  }

  Least reduction(const casync::Unit& unit, std::span<const std::int8_t> algorithms,
                  std::span<const std::uint32_t> exchanges) const {
    const casync::Group all{shards_, 1};
    Least least =
        collective(Kind::kReduceScatter, all, casync::stored_bytes(unit, problem_.model, shards_));
    for (const std::int8_t index : algorithms) {
      const casync::Algorithm& algorithm = plan_.algorithms[static_cast<std::size_t>(index)];
      if (algorithm.half_precision) {
        least.or_else(collective(Kind::kReduceScatter, all, message(unit, index, shards_)));
        continue;
      }
      for (const std::uint32_t within : exchanges) least.or_else(exchange(unit, algorithm, within));
    }
    Least means = mean_over_groups(unit);
    least.also(means);
    return least;
  }

  Least exchange(const casync::Unit& unit, const casync::Algorithm& algorithm,
                 std::uint32_t within) const {
    const std::int64_t elements = casync::shard_elements(unit, problem_.model, shards_);
    const std::uint32_t between = shards_ / within;
    Least both =
        collective(Kind::kAllToAll, {between, within}, algorithm.message_bytes(elements) * between);
    both.also(collective(Kind::kAllToAll, {within, 1},
                         algorithm.message_bytes(elements * between) * within));
    return both;
  }

  /// Least time of the mean over the groups of a hybrid schedule, with 2 bytes an element.
  Least mean_over_groups(const casync::Unit& unit) const {
    const std::uint32_t groups = plan_.nodes / shards_;
    const std::int64_t bytes = 2 * casync::shard_elements(unit, problem_.model, shards_);
    Least both = collective(Kind::kReduceScatter, {groups, shards_}, bytes);
    both.also(collective(Kind::kAllGather, {groups, shards_}, bytes));
    return both;
  }

  const Problem& problem_;
  const casync::Plan& plan_;
  const casync::Layout layout_;
  const casync::Sharding& sharding_;
  const sim::TaskCosts costs_;
  const sim::Works works_;
  const std::uint32_t shards_;
};

}  // namespace

double shard_bound(const Problem& problem, const casync::Plan& plan,
                   std::span<const std::int8_t> gathers, std::span<const std::int8_t> reductions,
                   std::span<const std::uint32_t> exchanges) {
  return ShardBound(problem, plan).step_s(gathers, reductions, exchanges);
}

}  // namespace hipress::planner
