#include "casync/layers.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace hipress::casync {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char digit) { return digit >= '0' && digit <= '9'; });
}

std::string_view layer_of(const models::Gradient& gradient) {
  if (!gradient.layer.empty()) return gradient.layer;
  const std::string_view name = gradient.name;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    // A number at the end counts tensors, not layers, as in "parameters.12".
    if (end < name.size() && is_number(name.substr(begin, end - begin))) {
      return name.substr(0, end);
    }
    begin = end + 1;
  }
  return gradient.name;
}

}  // namespace

std::vector<std::uint32_t> backward_order(const models::Model& model) {
  std::vector<std::uint32_t> order(model.gradients.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return model.gradients[a].ready_s < model.gradients[b].ready_s;
  });
  return order;
}

Layers layers_of(const models::Model& model) {
  Layers layers{.names = {}, .of_gradient = std::vector<std::uint32_t>(model.gradients.size())};
  std::unordered_map<std::string_view, std::uint32_t> places;
  std::vector<std::uint32_t> order = backward_order(model);
  std::reverse(order.begin(), order.end());
  for (const std::uint32_t g : order) {
    const auto [place, is_new] = places.try_emplace(
        layer_of(model.gradients[g]), static_cast<std::uint32_t>(layers.names.size()));
    if (is_new) layers.names.emplace_back(place->first);
    layers.of_gradient[g] = place->second;
  }
  return layers;
}

}  // namespace hipress::casync
