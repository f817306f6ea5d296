#include "models/mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hipress::models {
namespace {

/// Joins the names of classes that have a share, each followed by `share_text(share)`.
template <typename ShareText>
std::string joined(const Mix& mix, std::string_view between, ShareText share_text) {
  std::string text;
  for (std::size_t i = 0; i < kComputeClasses; ++i) {
    if (mix[i] <= 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}{}{}", kComputeClassTable[i].name, between, share_text(mix[i]));
  }
  return text;
}

}  // namespace

std::span<const std::string_view> compute_class_names() {
  static const auto names = [] {
    std::array<std::string_view, kComputeClasses> all;
    std::ranges::transform(kComputeClassTable, all.begin(), &ComputeClassRow::name);
    return all;
  }();
  return names;
}

Mix assumed_mix() {
  Mix mix;
  std::ranges::transform(kComputeClassTable, mix.begin(), &ComputeClassRow::assumed_share);
  return mix;
}

Mix rounded(const Mix& mix, int digits) {
  const double whole = std::pow(10, digits);
  std::array<double, kComputeClasses> units;
  std::array<std::size_t, kComputeClasses> by_loss;
  std::iota(by_loss.begin(), by_loss.end(), 0);
  std::ranges::transform(mix, units.begin(), [&](double share) {
    return std::floor(std::max(0.0, share) * whole + 1e-9);
  });
  std::ranges::stable_sort(by_loss, std::greater(),
                           [&](std::size_t i) { return mix[i] * whole - units[i]; });
  const double missing = whole - std::accumulate(units.begin(), units.end(), 0.0);
  for (std::size_t i = 0; i < kComputeClasses && static_cast<double>(i) < missing; ++i) {
    ++units[by_loss[i]];
  }
  Mix result;
  std::ranges::transform(units, result.begin(), [&](double unit) { return unit / whole; });
  return result;
}

std::string describe(const Mix& mix) {
  return joined(mix, " ", [](double share) { return fmt::format("{:.3g} %", 100 * share); });
}

std::string mix_yaml(const Mix& mix) {
  return '{' + joined(mix, ": ", [](double share) { return fmt::format("{}", share); }) + '}';
}

}  // namespace hipress::models
