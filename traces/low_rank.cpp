#include "traces/low_rank.hpp"

#include <algorithm>

#include "traces/tensors.hpp"

namespace hipress::traces {
namespace {

constexpr std::int64_t kMostRank = 256;
constexpr std::int64_t kRate = 2;  // least compression ratio; others are sent uncompressed

/// Elements that PowerSGD all-reduces: uncompressed gradients, and the two factors.
struct Sent {
  std::int64_t whole = 0, p = 0, q = 0;
};

Sent sent_with(std::int64_t rank, std::span<const std::vector<std::int64_t>> shapes) {
  Sent sent;
  for (const std::vector<std::int64_t>& shape : shapes) {
    const std::int64_t elements = shape.empty() ? 1 : elements_or_none(shape);
    const std::int64_t rows = shape.empty() ? 1 : std::max<std::int64_t>(1, shape.front());
    const std::int64_t columns = elements / rows;
    const std::int64_t of_one = std::min({rank, rows, columns});
    const bool is_compressed = shape.size() > 1 && (rows + columns) * of_one * kRate < elements;
    sent.whole += is_compressed ? 0 : elements;
    sent.p += is_compressed ? rows * of_one : 0;
    sent.q += is_compressed ? columns * of_one : 0;
  }
  return sent;
}

}  // namespace

std::optional<std::int64_t> powersgd_rank(std::span<const std::vector<std::int64_t>> shapes,
                                          std::int64_t elements) {
  for (std::int64_t rank = 1; rank <= kMostRank; ++rank) {
    const Sent sent = sent_with(rank, shapes);
    if (sent.p == 0) break;
    // A trace of the CPU may contain only the first factor.
    const bool has_p = elements == sent.whole + sent.p;
    if (has_p || elements == sent.whole + sent.p + sent.q) return rank;
  }
  const Sent sent = sent_with(1, shapes);
  return sent.p > 0 && elements == sent.whole ? std::optional<std::int64_t>(0) : std::nullopt;
}

}  // namespace hipress::traces
