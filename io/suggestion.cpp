#include "io/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "io/error.hpp"

namespace hipress::io {
namespace {

/// Levenshtein's distance: how many letters to insert, delete or replace to turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances of a's first i letters to b's first j
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 200;  // comparing takes time by the product of two lengths
  if (word.size() > kLongest) return {};
  std::size_t least = std::max<std::size_t>(2, word.size() / 2) + 1;
  std::string_view best;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    const bool cut_short = word.size() > 1 && candidate.starts_with(word);
    const std::size_t distance = cut_short ? 1 : edit_distance(word, candidate);
    if (distance < least && distance < std::max(word.size(), candidate.size())) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string before_known(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest(word, known);
  return near.empty() ? "; " : fmt::format("; did you mean {}? ", quote(near));
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest(word, known);
  const std::string question = near.empty() ? "" : fmt::format("; did you mean {}?", quote(near));
  return fmt::format("{} (known: {})", question, fmt::join(known, ", "));
}

}  // namespace hipress::io
