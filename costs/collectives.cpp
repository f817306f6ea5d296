#include "costs/collectives.hpp"

#include <fmt/format.h>

#include <iterator>

namespace hipress::costs {
namespace {

double steps_s(double steps, double nodes, std::int64_t bytes, const LinkCosts& link) {
  return steps *
         (link.overhead_s + static_cast<double>(bytes) / nodes / link.bandwidth + link.latency_s);
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
                               all_reduce_s, &Profile::all_reduce};
const CollectiveRow kAllGather{"all-gather", "an ideal ring, (N-1)·(o + S/(N·B) + L)", ring_s,
                               &Profile::all_gather};
const CollectiveRow kReduceScatter{"reduce-scatter", "an ideal ring, (N-1)·(o + S/(N·B) + L)",
                                   ring_s, &Profile::reduce_scatter};
const CollectiveRow kAllToAll{"all-to-all", "messages one by one, (N-1)·o + (N-1)/N·S/B + L",
                              exchange_s, &Profile::all_to_all};

double CollectiveCosts::seconds(std::uint32_t nodes, std::int64_t bytes,
                                const LinkCosts& link) const {
  const auto n = static_cast<int>(nodes);
  if (nodes < 2) return 0;
  const auto exact = measured_.find(n);
  if (exact != measured_.end() && link == link_) return exact->second(bytes);
  const double ideal = row_.ideal_s(n, bytes, link);
  if (measured_.empty()) return ideal;
  const auto above = measured_.lower_bound(n);
  if (above == measured_.end()) return ideal * ratio(measured_.rbegin()->first, bytes);
  if (above == measured_.begin() || above->first == n) return ideal * ratio(above->first, bytes);
  const int low = std::prev(above)->first;
  const double share = static_cast<double>(n - low) / (above->first - low);
  return ideal * ((1 - share) * ratio(low, bytes) + share * ratio(above->first, bytes));
}

double CollectiveCosts::ratio(int nodes, std::int64_t bytes) const {
  const double ideal = row_.ideal_s(nodes, bytes, link_);
  return ideal > 0 ? measured_.at(nodes)(bytes) / ideal : 1;
}

std::string CollectiveCosts::diagnostic(std::uint32_t nodes) const {
  const auto n = static_cast<int>(nodes);
  if (nodes < 2 || measured_.contains(n)) return {};
  const std::string what = fmt::format("{} of {} nodes was not measured: ", row_.name, nodes);
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

double ShardCosts::gather_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const {
  if (gather_.is_measured()) return gather_.seconds(nodes, bytes, link);
  return all_reduce_.seconds(nodes, bytes, link) / 2;
}

double ShardCosts::reduce_scatter_s(std::uint32_t nodes, std::int64_t bytes,
                                    const LinkCosts& link) const {
  if (reduce_scatter_.is_measured()) return reduce_scatter_.seconds(nodes, bytes, link);
  return all_reduce_.seconds(nodes, bytes, link) / 2;
}

double ShardCosts::all_to_all_s(std::uint32_t nodes, std::int64_t bytes,
                                const LinkCosts& link) const {
  return all_to_all_.seconds(nodes, bytes, link);
}

std::string ShardCosts::diagnostic(std::uint32_t nodes) const {
  if (!gather_.is_measured() || !reduce_scatter_.is_measured()) {
    return all_reduce_.diagnostic(nodes);
  }
  const std::string of_gather = gather_.diagnostic(nodes);
  return of_gather.empty() ? reduce_scatter_.diagnostic(nodes) : of_gather;
}

}  // namespace hipress::costs
