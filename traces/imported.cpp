#include "traces/imported.hpp"

#include <algorithm>
#include <utility>

#include "io/utf8.hpp"
#include "models/model.hpp"

namespace hipress::traces {

std::string short_text(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return io::printable(text.substr(0, kMost));
}

std::optional<std::int64_t> total_of(const std::vector<TracedGradient>& parts) {
  std::int64_t sum = 0;
  for (const TracedGradient& part : parts) {
    if (part.elements <= 0 || part.elements > models::kMaxElements - sum) return std::nullopt;
    sum += part.elements;
  }
  return parts.empty() ? std::nullopt : std::optional(sum);
}

bool same_layout(const std::vector<TracedGradient>& a, const std::vector<TracedGradient>& b) {
  return std::ranges::equal(a, b, [](const TracedGradient& one, const TracedGradient& other) {
    return one.elements == other.elements && one.shape == other.shape;
  });
}

void Imported::tell(std::string sentence) {
  constexpr std::size_t kMost = 8;
  if (not_told.size() > kMost || std::ranges::find(not_told, sentence) != not_told.end()) return;
  not_told.push_back(not_told.size() < kMost ? std::move(sentence) : "and more of the same");
}

std::optional<std::int64_t> TracedStep::collective_elements() const {
  const bool sparse = std::ranges::any_of(
      gradients, [](const TracedGradient& gradient) { return gradient.sparse.has_value(); });
  return sparse ? std::nullopt : total_of(buckets);
}

}  // namespace hipress::traces
