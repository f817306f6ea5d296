#include "planner/bound/group_sizes.hpp"

#include <algorithm>
#include <limits>

#include "casync/layout.hpp"

namespace hipress::planner {
namespace {

constexpr std::int64_t kNotSmall = std::numeric_limits<std::int64_t>::max();

/// Largest number of members within the rule's size limit of a group: the smallest gradients.
std::size_t most_members(const casync::Aggregation& rule, std::vector<std::int64_t> sizes) {
  if (!rule.limit_bytes) return sizes.size();
  std::sort(sizes.begin(), sizes.end());
  std::int64_t sum = 0;
  std::size_t count = 0;
  while (count < sizes.size() && sum + sizes[count] <= *rule.limit_bytes) {
    sum += sizes[count++];
  }
  return std::max<std::size_t>(count, 1);
}

/// Finds gradients that can share a group: neighbours in backward that the rule's wait allows.
class Windows {
 public:
  Windows(const models::Model& model, const casync::Aggregation& rule, const ReadyTimes& ready)
      : model_(model), rule_(rule), ready_(ready) {}

  template <class BytesOf>
  std::vector<double> groups_of(const BytesOf& bytes_of) const {
    std::vector<double> sizes_of(ready_.order.size(), 0);
    std::vector<std::size_t> small;
    std::vector<std::int64_t> sizes;
    for (std::size_t place = 0; place < ready_.order.size(); ++place) {
      const std::int64_t bytes = bytes_of(place);
      if (bytes >= rule_.threshold_bytes) continue;
      small.push_back(place);
      sizes.push_back(bytes);
    }
    const double most = static_cast<double>(most_members(rule_, sizes));
    std::size_t first = 0;
    std::vector<double> window(small.size());  // number of members of the group that begins here
    for (std::size_t last = 0; last < small.size(); ++last) {
      while (rule_.wait && nominal(small[last]) - nominal(small[first]) > *rule_.wait) ++first;
      for (std::size_t i = first; i <= last; ++i) window[i] = static_cast<double>(last - i + 1);
    }
    for (std::size_t i = 0; i < small.size(); ++i) {
      double largest = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        if (static_cast<double>(i - j) < window[j]) largest = std::max(largest, window[j]);
      }
      sizes_of[small[i]] = std::min(largest, most);
    }
    return sizes_of;
  }

 private:
  casync::Picoseconds nominal(std::size_t place) const {
    return casync::from_seconds(model_.gradients[ready_.order[place]].ready_s);
  }

  const models::Model& model_;
  const casync::Aggregation& rule_;
  const ReadyTimes& ready_;
};

}  // namespace

std::vector<std::vector<double>> group_sizes(const models::Model& model, const Choices& choices,
                                             const Scheme& scheme, const ReadyTimes& ready) {
  const std::size_t forms = choices.algorithms.size() + 1;
  if (scheme.bulk.threshold_bytes <= 0) {
    return std::vector(forms, std::vector<double>(ready.order.size(), 0));
  }
  const Windows windows(model, scheme.bulk, ready);
  std::vector sizes(forms, windows.groups_of([&](std::size_t place) -> std::int64_t {
    const models::Gradient& gradient = model.gradients[ready.order[place]];
    return gradient.elements * models::size_of(gradient.dtype);
  }));
  for (std::size_t i = 0; i < choices.algorithms.size(); ++i) {
    const casync::Algorithm& algorithm = choices.algorithms[i];
    if (!algorithm.is_additive()) continue;
    const auto index = static_cast<std::int8_t>(i);
    sizes[i + 1] = windows.groups_of([&](std::size_t place) -> std::int64_t {
      const std::uint32_t g = ready.order[place];
      const bool has_it = std::ranges::any_of(
          choices.gradients[g],
          [&](const casync::Decision& decision) { return decision.algorithm == index; });
      if (!has_it) return kNotSmall;
      return casync::groupable(model.gradients[g], index, &algorithm).bytes;
    });
  }
  return sizes;
}

}  // namespace hipress::planner
