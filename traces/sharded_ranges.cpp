#include "traces/sharded_ranges.hpp"

#include "traces/imported.hpp"

namespace hipress::traces {
namespace {

constexpr std::string_view kFsdp1 = "FullyShardedDataParallel.";
constexpr std::string_view kFsdp2 = "FSDP::";
/// Beginnings, after "FSDP::", of ranges that start collectives and name their layer.
constexpr std::string_view kOfLayer[] = {"all_gather", "post_backward_reduce"};

}  // namespace

std::optional<FsdpRange> range_of_fsdp(std::string_view name) {
  if (name.starts_with(kFsdp1)) {
    // Other ranges contain forward passes.
    const std::string_view hook = name.substr(kFsdp1.size());
    if (!hook.starts_with("_pre_") && !hook.starts_with("_post_backward")) return std::nullopt;
    return FsdpRange{.communicates = true};
  }
  if (!name.starts_with(kFsdp2)) return std::nullopt;
  const std::string_view what = name.substr(kFsdp2.size());
  for (const std::string_view known : kOfLayer) {
    if (!what.starts_with(known)) continue;
    std::string_view rest = what.substr(known.size());
    if (!rest.empty() && (!rest.starts_with(" (") || !rest.ends_with(')'))) continue;
    if (!rest.empty()) rest = rest.substr(2, rest.size() - 3);
    return FsdpRange{.communicates = true, .is_named = true, .layer = short_text(rest)};
  }
  return FsdpRange{};
}

}  // namespace hipress::traces
