#include <array>
#include <stdexcept>

#include "casync/layers.hpp"
#include "casync/schedules/rows.hpp"

namespace hipress::casync {
namespace {

constexpr std::int64_t kMostNodes = 1 << 20;
constexpr std::int64_t kMostInFlight = 1000;
constexpr std::array<std::string_view, 3> kPrefetches = {"pre", "post", "none"};
constexpr std::array<std::string_view, 2> kCommunicators = {"shared", "separate"};
constexpr std::array<std::string_view, 2> kReshard = {"true", "false"};

constexpr ScheduleParameter kShardParameter = {
    .name = "shard",
    .help =
        "number of neighbours that together hold all shards, such as a host's GPUs; less: less "
        "traffic between hosts, more memory",
    .least = 1,
    .most = kMostNodes,
    .value = 8,
    .always_said = true};
constexpr ScheduleParameter kReshardParameter = {
    .name = "reshard",
    .help =
        "keeps only a layer's shard between forward and backward (true); a number: a shard of that "
        "many neighbours, among whom backward gathers it",
    .least = 2,
    .most = kMostNodes,
    .words = kReshard,
    .or_number = true};
constexpr ScheduleParameter kPrefetchParameter = {
    .name = "prefetch",
    .help =
        "gather of a layer for backward: before (pre) or behind (post) the pass of the layer "
        "before it, or after that layer's reduction (none)",
    .words = kPrefetches};
constexpr ScheduleParameter kInFlightParameter = {
    .name = "in_flight",
    .help = "number of layers that are gathered at a time; more: earlier gathers, more memory",
    .least = 1,
    .most = kMostInFlight,
    .value = 2};
constexpr ScheduleParameter kCommunicatorsParameter = {
    .name = "communicators",
    .help = "gathers and reductions one after the other (shared) or at the same time (separate)",
    .words = kCommunicators};

constexpr std::array<ScheduleParameter, 4> kFsdpParameters = {
    kReshardParameter, kPrefetchParameter, kInFlightParameter, kCommunicatorsParameter};
constexpr std::array<ScheduleParameter, 5> kHsdpParameters = {
    kShardParameter, kReshardParameter, kPrefetchParameter, kInFlightParameter,
    kCommunicatorsParameter};

/// Reads the sharding from the values of kFsdpParameters, which come last.
Sharding sharding_of(const ScheduleValues& values) {
  const auto first = values.end() - kFsdpParameters.size();
  const std::int64_t reshard = first[0];  // index of a word, or a number
  return {.kept_among = static_cast<std::uint32_t>(reshard),
          .prefetch = static_cast<Prefetch>(first[1]),
          .in_flight = static_cast<std::uint32_t>(first[2]),
          .separate_communicators = first[3] == 1};
}

Timetable by_layers(const Sharding& sharding, const models::Model& model) {
  const Layers layers = layers_of(model);
  if (layers.names.empty()) {
    throw std::invalid_argument("a sharded schedule gathers layers, and the model has none");
  }
  Timetable table{
      .steps = 1, .part_of = layers.of_gradient, .synchronisations = {}, .sharding = sharding};
  for (std::uint32_t layer = 0; layer < layers.names.size(); ++layer) {
    table.synchronisations.push_back({.part = layer, .step = 0, .awaited = 1});
  }
  return table;
}

Timetable over_all(const ScheduleValues& values, const models::Model& model) {
  return by_layers(sharding_of(values), model);
}

Timetable over_groups(const ScheduleValues& values, const models::Model& model) {
  Sharding sharding = sharding_of(values);
  sharding.nodes = static_cast<std::uint32_t>(values.front());
  return by_layers(sharding, model);
}

void check_groups(const ScheduleValues& values) {
  const Sharding sharding = sharding_of(values);
  if (sharding.kept_among > values.front()) {
    throw std::invalid_argument("hsdp: reshard=" + std::to_string(sharding.kept_among) +
                                " of shard=" + std::to_string(values.front()) +
                                ": a layer has no more shards than that; give reshard=true");
  }
}

constexpr ScheduleAlias kFsdpAliases[] = {
    {"zero", "fsdp"},       {"zero2", "fsdp(reshard=false)"},
    {"zero3", "fsdp"},      {"zero_2", "fsdp(reshard=false)"},
    {"zero_3", "fsdp"},     {"fsdp1", "fsdp(prefetch=post)"},
    {"fsdp2", "fsdp"},      {"fully_shard", "fsdp"},
    {"full_shard", "fsdp"}, {"shard_grad_op", "fsdp(reshard=false)"}};
constexpr ScheduleAlias kHsdpAliases[] = {{"hybrid_shard", "hsdp"}, {"hybrid", "hsdp"}};

}  // namespace

/// Fully sharded data parallel training. prefetch=pre is the order of PyTorch's FSDP2
/// (torch/distributed/fsdp/_fully_shard). `post` and `none` are orders of FSDP1:
/// backward_prefetch=BACKWARD_POST and None.
const ScheduleRow kFsdp{
    .name = "fsdp",
    .help =
        "parameters, gradients and the optimizer's state in shards over all nodes (FSDP, ZeRO-3)",
    .parameters = kFsdpParameters,
    .check = nullptr,
    .timetable = over_all,
    .gives_up = nullptr,
    .sharded = true,
    .aliases = kFsdpAliases};

/// Fully sharded training within groups of neighbours; gradients are averaged over groups.
const ScheduleRow kHsdp{.name = "hsdp",
                        .help =
                            "parameters, gradients and the optimizer's state in shards over groups "
                            "of neighbours, between which gradients are averaged "
                            "(HSDP)",
                        .parameters = kHsdpParameters,
                        .check = check_groups,
                        .timetable = over_groups,
                        .gives_up = nullptr,
                        .sharded = true,
                        .aliases = kHsdpAliases};

}  // namespace hipress::casync
