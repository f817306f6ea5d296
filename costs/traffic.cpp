#include "costs/traffic.hpp"

#include <fmt/format.h>

#include <string>

namespace hipress::costs {
namespace {

/// Rounds to five digits, ties up despite floating-point error, so a file can show estimates
/// exactly.
double to_five_digits(double value) {
  constexpr double kHalvesUp = 1 + 1e-12;
  return std::stod(fmt::format("{:.4e}", value * kHalvesUp));
}

Curve estimated_curve(const KernelEstimate& estimate, double bytes_per_element, int kernels,
                      double bandwidth) {
  const double reached = estimate.share_of_memory * bandwidth;
  return {.pieces = {{.from = 0,
                      .a_s = to_five_digits(estimate.first_launch_s +
                                            estimate.next_launch_s * (kernels - 1)),
                      .b_s = to_five_digits(bytes_per_element / reached)}}};
}

}  // namespace

std::optional<Traffic> least_traffic(const std::string& algorithm) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  return row != nullptr ? std::optional(row->traffic) : std::nullopt;
}

std::optional<CodecCosts> estimated_costs(const Profile& profile, const std::string& algorithm) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  if (!profile.estimate || row == nullptr || row->additive || row->traffic.encode == 0) return {};
  const Traffic& traffic = row->traffic;
  const double bandwidth =
      profile.kernels_measured_at > 0 ? profile.kernels_measured_at : profile.memory_bandwidth;
  const auto curve = [&](double bytes_per_element, int kernels) {
    return estimated_curve(*profile.estimate, bytes_per_element, kernels, bandwidth);
  };
  return CodecCosts{.encode = curve(traffic.encode, traffic.encode_kernels),
                    .decode = curve(traffic.decode, traffic.decode_kernels),
                    .decode_add = curve(traffic.decode_add, traffic.decode_kernels)};
}

void add_estimated_costs(Profile& profile) {
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    const std::string name(row.name);
    if (profile.codecs.contains(name)) continue;
    if (const auto costs = estimated_costs(profile, name)) profile.codecs[name] = *costs;
  }
}

double share_of_bandwidth(const Curve& work, double bytes_per_element, double bandwidth) {
  return bytes_per_element * static_cast<double>(kLargeSlice) / work(kLargeSlice) / bandwidth;
}

}  // namespace hipress::costs
