#include "traces/low_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "io/error.hpp"
#include "traces/imported.hpp"

namespace hipress::traces {
namespace {

/// Elements of PowerSGD's all-reduces of one rank: what it leaves as it is, and its factors.
struct PowerSgd {
  std::int64_t whole = 0, p = 0, q = 0;
};
PowerSgd powersgd_of(const std::vector<TracedGradient>& gradients, std::int64_t rank) {
  constexpr std::int64_t kRate = 2;  // that it compresses by at least
  PowerSgd sent;
  for (const TracedGradient& one : gradients) {
    const std::int64_t rows = one.shape.empty() ? 1 : one.shape.front();
    const std::int64_t columns = one.elements / std::max<std::int64_t>(1, rows);
    const std::int64_t of_one = std::min({rank, rows, columns});
    const bool is_compressed =
        one.shape.size() > 1 && (rows + columns) * of_one * kRate < one.elements;
    sent.whole += is_compressed ? 0 : one.elements;
    sent.p += is_compressed ? rows * of_one : 0;
    sent.q += is_compressed ? columns * of_one : 0;
  }
  return sent;
}

}  // namespace

std::string why_fewer(const TracedStep& step, std::int64_t elements) {
  constexpr std::int64_t kMostRank = 256;
  const char* const remedy =
      ": the job sends factors of low rank; trace it without that hook for a model of its "
      "gradients";
  for (std::int64_t rank = 1; rank <= kMostRank; ++rank) {
    const PowerSgd sent = powersgd_of(step.gradients, rank);
    if (sent.p == 0) break;
    // Of both factors, a trace of the CPU may show the first alone.
    if (elements == sent.whole + sent.p + sent.q || elements == sent.whole + sent.p) {
      return fmt::format(", as many as PowerSGD of rank {} sends{}", rank, remedy);
    }
  }
  const PowerSgd sent = powersgd_of(step.gradients, 1);
  if (step.factorises || (sent.p > 0 && elements == sent.whole)) {
    return fmt::format(", as where PowerSGD's factors travel beside them{}", remedy);
  }
  if (!step.travels.empty()) return fmt::format(": others travel by {}", io::quote(step.travels));
  return ": a hook sends something smaller than gradients (factors of low rank as PowerSGD, a part "
         "of them); trace the job without it";
}

}  // namespace hipress::traces
