#pragma once

#include <string_view>

#include "requests/hooks.hpp"
#include "requests/replay_request.hpp"
#include "requests/replayed.hpp"

/// Replays of jobs that choose the plan: field `auto`.
namespace hipress::requests {

/// Model of jobs without one.
inline constexpr std::string_view kUsualInput = "resnet50";

/// Chooses the plan, and replays it and the fastest one without compression in pairs of blocks. A
/// block has `warmup` and `iterations`; pairs follow until one is faster by more than the noise.
/// The report is about the iterations of the plan that would be chosen. Throws as replay().
Replayed replay_automatically(ReplayRequest request, const Hooks& hooks);

}  // namespace hipress::requests
