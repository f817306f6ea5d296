#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "costs/profile.hpp"
#include "io/yaml.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::costs {

/// Keys of a stage in a profile, in the order in which they are written. All but the first are
/// optional and default to 0.
struct StageKey {
  std::string_view name;
  double StageCosts::*cost;
};
inline constexpr std::array kStageKeys = {
    StageKey{"a_s", &StageCosts::a_s},
    StageKey{"s_per_element", &StageCosts::per_element_s},
    StageKey{"s_per_element_rank", &StageCosts::per_element_rank_s},
    StageKey{"s_per_value", &StageCosts::per_value_s},
    StageKey{"s_per_value_rank", &StageCosts::per_value_rank_s},
};

/// Reads `stages` and `decode` of a staged algorithm (docs/profiles.md lists the keys).
CodecCosts read_stages(const io::YamlNode& codec);

/// Throws InputError if a known algorithm has the wrong kind of costs: a staged one needs one entry
/// of `stages` per stage of its codec, all others need curves. Unknown algorithms may have either.
void check_stages(const io::YamlNode& codec, std::string_view algorithm);

/// Reason why a codec cannot have costs of `stages` stages (0: curves); empty if it can.
std::string complaint_about_stages(std::string_view algorithm, const kernels::CodecTraits& traits,
                                   std::size_t stages);

}  // namespace hipress::costs
