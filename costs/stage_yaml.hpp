#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "costs/profile.hpp"
#include "io/yaml.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::costs {

/// The keys of a stage in a profile, in the order in which they are written. All but the first may
/// be left out, and are 0 then.
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

/// Reads `stages` and `decode` of an algorithm that has stages (docs/profiles.md lists the keys).
CodecCosts read_stages(const io::YamlNode& codec);

/// InputError unless an algorithm of the table has costs of its sort: as many `stages` as its codec
/// has, or curves. An algorithm that is not in the table may have either.
void check_stages(const io::YamlNode& codec, std::string_view algorithm);

/// Why a codec cannot have costs of so many stages; empty if it can. 0: it has curves.
std::string complaint_about_stages(std::string_view algorithm, const kernels::CodecTraits& traits,
                                   std::size_t stages);

}  // namespace hipress::costs
