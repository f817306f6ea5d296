#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hipress::traces {

/// The rank of PowerSGD's factors, if gradients of these shapes make it send so many elements: what
/// it leaves as it is, with P or with P and Q. 0: so many as it leaves, beside factors of any rank.
std::optional<std::int64_t> powersgd_rank(std::span<const std::vector<std::int64_t>> shapes,
                                          std::int64_t elements);

}  // namespace hipress::traces
