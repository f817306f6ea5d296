#include "costs/all_reduce.hpp"

#include <iterator>

namespace hipress::costs {
namespace {

double ring_s(double nodes, std::int64_t bytes, const LinkCosts& link) {
  const double steps = 2 * (nodes - 1);
  return steps *
         (link.overhead_s + static_cast<double>(bytes) / nodes / link.bandwidth + link.latency_s);
}

}  // namespace

double AllReduceCosts::seconds(std::uint32_t nodes, std::int64_t bytes,
                               const LinkCosts& link) const {
  const auto n = static_cast<int>(nodes);
  if (nodes < 2) return 0;
  const auto exact = measured_.find(n);
  if (exact != measured_.end() && link == link_) return exact->second(bytes);
  const double ideal = ring_s(n, bytes, link);
  if (measured_.empty()) return ideal;
  const auto above = measured_.lower_bound(n);
  if (above == measured_.end()) return ideal * ratio(measured_.rbegin()->first, bytes);
  if (above == measured_.begin() || above->first == n) return ideal * ratio(above->first, bytes);
  const int low = std::prev(above)->first;
  const double share = static_cast<double>(n - low) / (above->first - low);
  return ideal * ((1 - share) * ratio(low, bytes) + share * ratio(above->first, bytes));
}

double AllReduceCosts::ratio(int nodes, std::int64_t bytes) const {
  const double ideal = ring_s(nodes, bytes, link_);
  return ideal > 0 ? measured_.at(nodes)(bytes) / ideal : 1;
}

std::string AllReduceCosts::diagnostic(std::uint32_t nodes) const {
  const auto n = static_cast<int>(nodes);
  const std::string what = "all-reduce of " + std::to_string(nodes) + " nodes was not measured: ";
  if (nodes < 2 || measured_.contains(n)) return {};
  if (measured_.empty()) {
    return what + "taken as an ideal ring, 2(N-1)·(o + S/(N·B) + L); hipress-profile measures it";
  }
  const auto above = measured_.upper_bound(n);
  if (above == measured_.end() || above == measured_.begin()) {
    const int held = above == measured_.end() ? measured_.rbegin()->first : above->first;
    return what + "extrapolated from " + std::to_string(held) + " nodes";
  }
  return what + "interpolated between " + std::to_string(std::prev(above)->first) + " and " +
         std::to_string(above->first) + " nodes";
}

}  // namespace hipress::costs
