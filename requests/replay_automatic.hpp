#pragma once

#include <string_view>

#include "requests/hooks.hpp"
#include "requests/replay_request.hpp"
#include "requests/replayed.hpp"

/// Replays of jobs that choose the plan: field `auto`.
namespace hipress::requests {

/// Value of `input` for requests that give none.
inline constexpr std::string_view kUsualInput = "resnet50";

/// Chooses the plan, and replays it and the fastest plan without compression in pairs of blocks
/// until replay::judge() decides. A block is `warmup` + `iterations` iterations of one plan. The
/// report is about the iterations of the plan that would be chosen. Throws as replay().
Replayed replay_automatically(ReplayRequest request, const Hooks& hooks);

}  // namespace hipress::requests
