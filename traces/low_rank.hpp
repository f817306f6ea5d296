#pragma once

#include <cstdint>
#include <string>

namespace hipress::traces {

struct TracedStep;

/// Why buckets of so many elements have fewer than the gradients that they carry, with the remedy:
/// the end of a sentence. PowerSGD is known by the numbers of its factors (P and Q of each rank).
std::string why_fewer(const TracedStep& step, std::int64_t elements);

}  // namespace hipress::traces
