#include "costs/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace hipress::costs {
namespace {

double steps_s(double steps, double nodes, std::int64_t bytes, const LinkCosts& link) {
  return steps *
         (link.overhead_s + static_cast<double>(bytes) / nodes / link.bandwidth + link.latency_s);
}

/// True if both links have the same network costs; CPU costs are ignored.
bool is_same_wire(const LinkCosts& a, const LinkCosts& b) {
  return a.overhead_s == b.overhead_s && a.bandwidth == b.bandwidth &&
         a.bandwidth_both_ways == b.bandwidth_both_ways && a.latency_s == b.latency_s &&
         a.burst_bytes == b.burst_bytes;
}

/// True if the profile was measured on one machine, and moving bytes at the link's full rate keeps
/// a quarter of a core or more busy. A slower network (such as one between network namespaces of
/// the machine) keeps it less busy, and then cores are not the limit.
bool limited_by_cores(const Profile& profile) {
  constexpr double kBusy = 0.25;
  if (!profile.shared_host || profile.cores == 0) return false;
  const LinkCosts& link = profile.link;
  return link.core_s_per_byte == 0 || link.core_s_per_byte * link.bandwidth >= kBusy;
}

/// Measurement at the number of nodes nearest to `nodes`. Considers only numbers that need several
/// hosts if `spans_hosts`, else only those that fit on one: collectives within a host say little
/// about those between hosts. Null if there is no such measurement.
const GatherCosts::value_type* nearest_measured(const GatherCosts& measured, const Machine& machine,
                                                std::uint32_t nodes, bool spans_hosts) {
  const auto distance = [&](int n) { return std::abs(std::log(static_cast<double>(n) / nodes)); };
  const GatherCosts::value_type* nearest = nullptr;
  for (const auto& one : measured) {
    const bool alike = (static_cast<std::uint32_t>(one.first) > machine.gpus) == spans_hosts;
    if (!alike) continue;
    if (nearest == nullptr || distance(one.first) < distance(nearest->first)) nearest = &one;
  }
  return nearest;
}

double all_reduce_s(double nodes, std::int64_t bytes, const LinkCosts& link) {
  return steps_s(2 * (nodes - 1), nodes, bytes, link);
}

double ring_s(double nodes, std::int64_t bytes, const LinkCosts& link) {
  return steps_s(nodes - 1, nodes, bytes, link);
}

double exchange_s(double nodes, std::int64_t bytes, const LinkCosts& link) {
  const double others = nodes - 1;
  return others * link.overhead_s + others / nodes * static_cast<double>(bytes) / link.bandwidth +
         link.latency_s;
}

}  // namespace

const CollectiveRow kAllReduce{"all-reduce", "an ideal ring, 2(N-1)·(o + S/(N·B) + L)",
                               all_reduce_s, &Profile::all_reduce, Operation::kAllReduce};
const CollectiveRow kAllGather{"all-gather", "an ideal ring, (N-1)·(o + S/(N·B) + L)", ring_s,
                               &Profile::all_gather, Operation::kAllGather};
const CollectiveRow kReduceScatter{"reduce-scatter", "an ideal ring, (N-1)·(o + S/(N·B) + L)",
                                   ring_s, &Profile::reduce_scatter, Operation::kReduceScatter};
const CollectiveRow kAllToAll{"all-to-all", "messages one by one, (N-1)·o + (N-1)/N·S/B + L",
                              exchange_s, &Profile::all_to_all, Operation::kAllToAll};

double wire_s(const CollectiveRow& row, std::uint32_t nodes, std::int64_t bytes,
              const LinkCosts& link) {
  return nodes < 2 ? 0 : row.ideal_s(nodes, bytes, {.bandwidth = link.bandwidth});
}

CollectiveCosts::CollectiveCosts(const Profile& profile, const CollectiveRow& row)
    : row_(row), link_(profile.link), measured_(profile.*row.measured), machine_(profile.machine) {
  if (limited_by_cores(profile)) cores_ = profile.cores;
}

double CollectiveCosts::seconds(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                                double ranks_per_core) const {
  const auto n = static_cast<int>(nodes);
  if (nodes < 2) return 0;
  const auto exact = measured_.find(n);
  if (exact != measured_.end() && is_same_wire(link, link_)) return exact->second(bytes);
  if (is_modelled(nodes, link)) return modelled_s(nodes, bytes, link);
  const double wire = row_.ideal_s(n, bytes, link), core = core_s(n, bytes);
  return cores_ > 0 ? std::max(wire, core * ranks_per_core) : wire + core;
}

/// True if the ranks are spread evenly over known hosts of the machine.
bool CollectiveCosts::is_modelled(std::uint32_t nodes, const LinkCosts& link) const {
  const std::uint32_t hosts = link.span.hosts;
  return machine_ && hosts > 0 && nodes % hosts == 0 && nodes / hosts <= machine_->gpus;
}

Ranks CollectiveCosts::ranks(std::uint32_t nodes, const LinkCosts& link) const {
  Ranks ranks = {.hosts = link.span.hosts, .gpus = nodes};
  if (ranks.hosts > 1) {
    ranks.host_bandwidth = link.span.host_bandwidth;
    ranks.latency_s = link.latency_s;
  }
  return ranks;
}

PortShares CollectiveCosts::port_shares(std::uint32_t nodes, std::int64_t bytes,
                                        const LinkCosts& link) const {
  if (nodes < 2 || !is_modelled(nodes, link)) return {};
  const CollectiveWay way = collective_time(*machine_, ranks(nodes, link), row_.operation,
                                            static_cast<double>(bytes) / link.span.rails);
  return {way.within, way.between};
}

double CollectiveCosts::modelled_s(std::uint32_t nodes, std::int64_t bytes,
                                   const LinkCosts& link) const {
  const double shared = static_cast<double>(bytes) / link.span.rails;
  const auto time_s = [&](const Ranks& of) {
    return collective_time(*machine_, of, row_.operation, shared).seconds;
  };
  const double modelled = time_s(ranks(nodes, link));
  const auto* nearest = nearest_measured(measured_, *machine_, nodes, link.span.hosts > 1);
  if (nearest == nullptr || link.span.rails > 1) return modelled;
  const auto n = static_cast<std::uint32_t>(nearest->first);
  const std::uint32_t hosts = std::max(1U, n / machine_->gpus);
  if (n % hosts != 0 || n / hosts > machine_->gpus) return modelled;
  return modelled * nearest->second(bytes) / time_s({.hosts = hosts, .gpus = n});
}

double CollectiveCosts::least_s_per_byte(std::uint32_t nodes, const LinkCosts& link) const {
  if (!is_modelled(nodes, link) || !measured_.empty()) return 0;
  // The time per byte of each way falls with the size, and at this size is close to its limit.
  constexpr double kManyBytes = 1e15, kAbove = 0.999;
  double least_s = std::numeric_limits<double>::infinity();
  for (const CollectiveWay& way :
       collective_ways(*machine_, ranks(nodes, link), row_.operation, kManyBytes)) {
    least_s = std::min(least_s, way.seconds);
  }
  return kAbove * least_s / kManyBytes / link.span.rails;
}

double CollectiveCosts::core_s(int nodes, std::int64_t bytes) const {
  if (measured_.empty()) return 0;
  const double ideal = row_.ideal_s(nodes, bytes, link_);
  const auto above = measured_.lower_bound(nodes);
  if (above == measured_.end()) return ideal * core_share(measured_.rbegin()->first, bytes);
  if (above == measured_.begin() || above->first == nodes) {
    return ideal * core_share(above->first, bytes);
  }
  const int low = std::prev(above)->first;
  const double share = static_cast<double>(nodes - low) / (above->first - low);
  return ideal * ((1 - share) * core_share(low, bytes) + share * core_share(above->first, bytes));
}

/// Core time divided by the ideal time, for ranks with a core each.
double CollectiveCosts::core_share(int nodes, std::int64_t bytes) const {
  const double ideal = row_.ideal_s(nodes, bytes, link_);
  const double taken = ideal > 0 ? measured_.at(nodes)(bytes) / ideal : 0;
  return cores_ > 0 ? taken / std::max(1.0, 1.0 * nodes / cores_) : std::max(0.0, taken - 1);
}

std::string CollectiveCosts::diagnostic(std::uint32_t nodes) const {
  const auto n = static_cast<int>(nodes);
  if (nodes < 2 || measured_.contains(n)) return {};
  const std::string what = fmt::format("{} of {} nodes was not measured: ", row_.name, nodes);
  if (machine_ && !nearest_measured(measured_, *machine_, nodes, nodes > machine_->gpus)) {
    return fmt::format("{}modelled as {} runs it on {} (docs/collectives.md)", what,
                       name_of(machine_->library), machine_->name);
  }
  if (measured_.empty()) return what + "taken as " + row_.formula + "; hipress-profile measures it";
  const auto above = measured_.upper_bound(n);
  if (above == measured_.end() || above == measured_.begin()) {
    const int held = above == measured_.end() ? measured_.rbegin()->first : above->first;
    return fmt::format("{}extrapolated from {} nodes", what, held);
  }
  return fmt::format("{}interpolated between {} and {} nodes", what, std::prev(above)->first,
                     above->first);
}

ShardCosts::ShardCosts(const Profile& profile)
    : all_reduce_(profile),
      gather_(profile, kAllGather),
      reduce_scatter_(profile, kReduceScatter),
      all_to_all_(profile, kAllToAll) {}

double ShardCosts::gather_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                            double ranks_per_core) const {
  if (gather_.is_known()) return gather_.seconds(nodes, bytes, link, ranks_per_core);
  return all_reduce_.seconds(nodes, bytes, link, ranks_per_core) / 2;
}

double ShardCosts::reduce_scatter_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                                    double ranks_per_core) const {
  if (!reduce_scatter_.is_known()) {
    return all_reduce_.seconds(nodes, bytes, link, ranks_per_core) / 2;
  }
  return reduce_scatter_.seconds(nodes, bytes, link, ranks_per_core);
}

double ShardCosts::all_to_all_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                                double ranks_per_core) const {
  return all_to_all_.seconds(nodes, bytes, link, ranks_per_core);
}

std::string ShardCosts::diagnostic(std::uint32_t nodes) const {
  if (!gather_.is_known() || !reduce_scatter_.is_known()) {
    return all_reduce_.diagnostic(nodes);
  }
  const std::string of_gather = gather_.diagnostic(nodes);
  return of_gather.empty() ? reduce_scatter_.diagnostic(nodes) : of_gather;
}

}  // namespace hipress::costs
