#include "traces/updated_tensors.hpp"

#include <algorithm>
#include <utility>

namespace hipress::traces {
namespace {

// Minimum number of gradients per gradient that is taken for an input's; with fewer, none is taken.
constexpr std::size_t kLeastParameters = 3;

}  // namespace

bool is_in_place(std::string_view name) {
  return name.starts_with("aten::") && name.ends_with('_');
}

void UpdatedTensors::add_step(std::span<const Update> updates) {
  Counts counts;
  for (const Update& update : updates) {
    for (const Shape& shape : update.shapes) ++counts[update.name][shape];
  }
  if (counts.empty()) return;
  alike_ = alike_ && (counts_.empty() || counts == counts_);
  for (const auto& [name, shapes] : counts) {
    for (const auto& [shape, count] : shapes) {
      std::int64_t& most = counts_[name][shape];
      most = std::max(most, count);
    }
  }
}

/// Number of parameters that have this shape, given the numbers of gradients by shape. An optimizer
/// treats all parameters alike: if an operator runs twice per parameter, it runs twice as often as
/// there are parameters of the shape.
std::int64_t UpdatedTensors::parameters_of(const Shape& shape,
                                           const std::map<Shape, std::int64_t>& gradients) const {
  const std::int64_t all = gradients.at(shape);
  std::int64_t found = 0;
  for (const auto& [name, shapes] : counts_) {
    const auto own = shapes.find(shape);
    if (own == shapes.end()) continue;
    if (!alike_) return all;
    double per_parameter = 0;
    for (const auto& [other, count] : shapes) {
      const auto of_other = gradients.find(other);
      if (of_other == gradients.end()) continue;
      per_parameter = std::max(per_parameter,
                               static_cast<double>(count) / static_cast<double>(of_other->second));
    }
    const double parameters = static_cast<double>(own->second) / per_parameter;
    found = std::max(found, static_cast<std::int64_t>(parameters + 0.999));
  }
  return std::min(all, found);
}

std::vector<std::size_t> UpdatedTensors::of_inputs(const std::vector<TracedGradient>& gradients,
                                                   std::optional<std::int64_t> carried) const {
  const auto total = total_of(gradients);
  if (!total || (carried && *carried >= *total)) return {};
  std::map<Shape, std::int64_t> counts, kept;
  for (const TracedGradient& one : gradients) ++counts[one.shape];
  for (const auto& [shape, count] : counts) {
    kept[shape] = shape.empty() || counts_.empty() ? count : parameters_of(shape, counts);
  }
  std::vector<std::size_t> found;
  std::int64_t elements = 0;
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    if (kept[gradients[g].shape]-- > 0) continue;
    found.push_back(g);
    elements += gradients[g].elements;
  }
  if (!carried) {
    const bool fits = found.size() * kLeastParameters <= gradients.size();
    return fits ? found : std::vector<std::size_t>();
  }
  const std::int64_t missing = *total - *carried;
  if (elements == missing) return found;
  // Without updates in the trace, the gradient of an input is the only one that no bucket carries.
  const auto has_missing = [&](const TracedGradient& one) { return one.elements == missing; };
  if (!counts_.empty() || std::ranges::count_if(gradients, has_missing) != 1) return {};
  return {
      static_cast<std::size_t>(std::ranges::find_if(gradients, has_missing) - gradients.begin())};
}

std::vector<TracedGradient> taken_out(std::vector<TracedGradient>& gradients,
                                      std::span<const std::size_t> places) {
  std::vector<TracedGradient> kept, taken;
  auto place = places.begin();
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    const bool takes = place != places.end() && *place == g;
    (takes ? taken : kept).push_back(std::move(gradients[g]));
    place += takes ? 1 : 0;
  }
  gradients = std::move(kept);
  return taken;
}

}  // namespace hipress::traces
