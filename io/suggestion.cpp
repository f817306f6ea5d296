#include "io/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "io/error.hpp"

namespace hipress::io {
namespace {

/// Letter without case; underscores become hyphens.
char folded(char letter) {
  if (letter == '_') return '-';
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

/// Edit distance (optimal string alignment): number of insertions, deletions, replacements and
/// swaps of neighbours that turn `a` into `b`. Letters compare as folded().
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [&](std::size_t i, std::size_t j) { return folded(a[i]) == folded(b[j]); };
  // Distances of prefixes: a's first i letters to b's first j, for this i and the two before.
  std::vector<std::size_t> row(b.size() + 1), above = row, second_above = row;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(second_above, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
        row[j] = std::min(row[j], second_above[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

bool begins_with(std::string_view word, std::string_view start) {
  return word.size() >= start.size() &&
         std::equal(start.begin(), start.end(), word.begin(),
                    [](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 200;  // bounds the time, which is the product of both lengths
  if (word.size() > kLongest) return {};
  std::size_t least = std::max<std::size_t>(2, word.size() / 2) + 1;
  std::string_view best;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    const bool cut_short = word.size() > 1 && begins_with(candidate, word);
    const std::size_t edits = edit_distance(word, candidate);
    const std::size_t distance = cut_short ? std::min<std::size_t>(edits, 1) : edits;
    if (distance < least && distance < std::max(word.size(), candidate.size())) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string question(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest(word, known);
  return near.empty() ? "" : fmt::format("; did you mean {}?", quote(near));
}

std::string before_known(std::string_view word, std::span<const std::string_view> known) {
  const std::string asked = question(word, known);
  return asked.empty() ? "; " : asked + " ";
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  return fmt::format("{} (known: {})", question(word, known), fmt::join(known, ", "));
}

std::string none_of(std::string_view word, std::span<const std::string_view> known) {
  return fmt::format("must be one of {}, got {}{}", fmt::join(known, ", "), quote(word),
                     question(word, known));
}

}  // namespace hipress::io
