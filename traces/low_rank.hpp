#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hipress::traces {

/// Rank of PowerSGD that sends `elements` elements for gradients of these shapes: the uncompressed
/// gradients and P, or these and Q. 0 if the number is that of the uncompressed gradients alone.
/// Empty if no rank fits.
std::optional<std::int64_t> powersgd_rank(std::span<const std::vector<std::int64_t>> shapes,
                                          std::int64_t elements);

}  // namespace hipress::traces
