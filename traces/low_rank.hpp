#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hipress::traces {

/// Rank of PowerSGD with which gradients of these shapes send `elements` elements: the uncompressed
/// gradients and P, or these and Q. 0: they send the uncompressed gradients alone. Empty: no rank
/// fits.
std::optional<std::int64_t> powersgd_rank(std::span<const std::vector<std::int64_t>> shapes,
                                          std::int64_t elements);

}  // namespace hipress::traces
