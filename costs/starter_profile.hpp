#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::costs {

/// Text of the starter profile GPU-RATEg, such as "h100-400g": estimated costs of a GPU and a
/// network that were not measured. Costs of kernels follow from the GPU's memory bandwidth and
/// FLOP/s and from launch times, those of links from published nccl-tests figures. Notes in the
/// profile name the sources. nullopt for other names.
std::optional<std::string> starter_profile(std::string_view name);

/// Names of all starter profiles, in alphabetic order.
std::vector<std::string> starter_profile_names();

}  // namespace hipress::costs
