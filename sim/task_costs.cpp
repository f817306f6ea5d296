#include "sim/task_costs.hpp"

#include <fmt/format.h>

#include <string_view>

#include "io/error.hpp"

namespace hipress::sim {
namespace {

/// A task's time in picoseconds. Throws InputError, with the amount in `unit`, if it is out of
/// range.
Picoseconds checked(const casync::Task& task, std::string_view unit, double seconds) {
  if (seconds >= 0 && seconds <= kLongest_s) return casync::from_seconds(seconds);
  throw io::InputError(
      fmt::format("{} of {} {} costs {} s by this profile; it must be 0 s to {:g} s",
                  casync::to_string(task.kind), task.amount, unit, seconds, kLongest_s));
}

}  // namespace

TaskCosts::TaskCosts(const costs::Profile& profile,
                     const std::vector<casync::Algorithm>& algorithms)
    : merge_(profile.merge), all_reduce_(profile), shards_(profile) {
  for (const casync::Algorithm& algorithm : algorithms) {
    codecs_.push_back(profile.codec(algorithm.name));
    traffic_.push_back(costs::least_traffic(algorithm.name).value_or(costs::Traffic{}));
  }
}

double TaskCosts::memory_bytes(const casync::Task& task) const {
  if (task.kind == casync::Kind::kMerge) {
    return costs::kMergeTraffic * static_cast<double>(task.amount);
  }
  const costs::Traffic& traffic = traffic_[static_cast<std::size_t>(task.algorithm)];
  const bool adds = (task.flags & casync::kAccumulate) != 0;
  const double per_element = task.kind == casync::Kind::kEncode ? traffic.encode
                             : adds                             ? traffic.decode_add
                                                                : traffic.decode;
  return per_element * static_cast<double>(task.amount);
}

Picoseconds TaskCosts::codec_time(const casync::Task& task, std::uint32_t divisor,
                                  std::uint32_t gpus,
                                  std::span<const casync::Factor> factors) const {
  if ((task.flags & casync::kBatched) != 0) return Picoseconds{0};  // part of its leader's time
  const std::int64_t elements = (task.amount + gpus - 1) / gpus;
  return checked(task, "elements",
                 factors.empty() ? slice_s(task, elements, divisor) : stage_s(task, factors));
}

double TaskCosts::slice_s(const casync::Task& task, std::int64_t elements,
                          std::uint32_t divisor) const {
  if (task.kind == casync::Kind::kMerge) return merge_(elements);
  const costs::CodecCosts& codec = codecs_[static_cast<std::size_t>(task.algorithm)];
  double seconds = task.kind == casync::Kind::kEncode
                       ? codec.encode_s(elements, casync::encodes_quotients(task, divisor))
                   : (task.flags & casync::kAccumulate) != 0 ? codec.decode_add(elements)
                                                             : codec.decode(elements);
  if (casync::gathers(task)) seconds += (divisor - 1) * codec.decode_add(elements);
  return seconds;
}

double TaskCosts::stage_s(const casync::Task& task, std::span<const casync::Factor> factors) const {
  const costs::CodecCosts& codec = codecs_[static_cast<std::size_t>(task.algorithm)];
  if (codec.stages.size() != factors.size()) {
    throw io::InputError(
        fmt::format("this profile has costs of {} stages of an algorithm that has {}; measure it "
                    "with hipress-profile `algorithm`",
                    codec.stages.size(), factors.size()));
  }
  const bool encodes = task.kind == casync::Kind::kEncode;
  const casync::Factor& factor = encodes ? factors[task.stage] : factors.back();
  costs::StageWork work{.elements = factor.elements, .element_ranks = factor.element_ranks};
  for (const casync::Factor& one : factors) {
    if (encodes && one.stage != task.stage) continue;
    work.values += one.values;
    work.value_ranks += one.value_ranks;
  }
  return (encodes ? codec.stages[task.stage] : codec.decode_stages).seconds(work);
}

Picoseconds TaskCosts::all_reduce_time(const casync::Task& task, std::uint32_t nodes,
                                       const costs::LinkCosts& link, std::uint32_t gpus,
                                       double ranks_per_core) const {
  const Picoseconds library =
      checked(task, "bytes", all_reduce_.seconds(nodes, task.amount, link, ranks_per_core));
  if (!casync::casts(task)) return library;
  return codec_time(casync::cast_of(task, casync::Kind::kEncode), nodes, gpus) + library +
         codec_time(casync::cast_of(task, casync::Kind::kDecode), nodes, gpus);
}

Picoseconds TaskCosts::group_time(const casync::Task& task, std::uint32_t nodes,
                                  const costs::LinkCosts& link, double ranks_per_core) const {
  const double seconds = task.kind == casync::Kind::kAllGather
                             ? shards_.gather_s(nodes, task.amount, link, ranks_per_core)
                         : task.kind == casync::Kind::kReduceScatter
                             ? shards_.reduce_scatter_s(nodes, task.amount, link, ranks_per_core)
                             : shards_.all_to_all_s(nodes, task.amount, link, ranks_per_core);
  return checked(task, "bytes", seconds);
}

costs::PortShares TaskCosts::port_shares(const casync::Task& task, std::uint32_t nodes,
                                         const costs::LinkCosts& link) const {
  const costs::CollectiveCosts& costs =
      task.kind == casync::Kind::kAllReduce
          ? static_cast<const costs::CollectiveCosts&>(all_reduce_)
      : task.kind == casync::Kind::kAllGather     ? shards_.gather()
      : task.kind == casync::Kind::kReduceScatter ? shards_.reduce_scatter()
                                                  : shards_.all_to_all();
  return costs.port_shares(nodes, task.amount, link);
}

}  // namespace hipress::sim
