#include "io/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "io/error.hpp"

namespace hipress::io {
namespace {

/// The letter in lower case; underscores become hyphens.
char folded(char letter) {
  if (letter == '_') return '-';
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

/// Edit distance (optimal string alignment): minimum number of insertions, deletions, replacements
/// and swaps of neighbours that turn `a` into `b`. Letters are compared by folded().
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [&](std::size_t i, std::size_t j) { return folded(a[i]) == folded(b[j]); };
  // Distances between a's first i letters and b's first j: for this i, and for the two before it.
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

/// Position of `part` in `word`; npos if it does not occur.
std::size_t position(std::string_view word, std::string_view part) {
  const auto found = std::search(word.begin(), word.end(), part.begin(), part.end(),
                                 [](char a, char b) { return folded(a) == folded(b); });
  return found == word.end() ? std::string_view::npos
                             : static_cast<std::size_t>(found - word.begin());
}

/// Distance for nearest() if `word` begins `candidate` (0.5), or a part of it after a hyphen
/// (0.75); otherwise infinity.
double part_distance(std::string_view word, std::string_view candidate) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::size_t at = word.size() > 1 ? position(candidate, word) : std::string_view::npos;
  if (at == 0) return 0.5;
  return at != std::string_view::npos && folded(candidate[at - 1]) == '-' ? 0.75 : kNone;
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 200;  // bounds the time, which is the product of both lengths
  if (word.size() > kLongest) return {};
  double least = static_cast<double>(std::max<std::size_t>(2, word.size() / 2) + 1);
  std::string_view best;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    const double distance = std::min(static_cast<double>(edit_distance(word, candidate)),
                                     part_distance(word, candidate));
    if (distance < least &&
        distance < static_cast<double>(std::max(word.size(), candidate.size()))) {
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
