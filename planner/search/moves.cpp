#include "planner/search/moves.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "casync/layout.hpp"

namespace hipress::planner {
namespace {

/// Shuffles in the same order on all platforms, which std::shuffle does not.
template <class Element>
void shuffle(std::vector<Element>& elements, Neighbourhoods::Draws& draws) {
  for (std::size_t i = elements.size(); i > 1; --i)
    std::swap(elements[i - 1], elements[draws() % i]);
}

constexpr std::size_t kMaxClasses = 48;
constexpr std::size_t kPairsPerGradient = 4;   // number of pairs drawn
constexpr std::size_t kMaxListedPairs = 1500;  // up to this number, all pairs are tried

}  // namespace

Candidate apply(const Move& move, const Candidate& candidate) {
  Candidate changed = candidate;
  if (move.scheme >= 0) changed.scheme = static_cast<std::uint32_t>(move.scheme);
  for (const Move::Change& change : move.changes) changed.options[change.gradient] = change.option;
  return changed;
}

Neighbourhoods::Neighbourhoods(const Problem& problem, const Choices& choices) : choices_(choices) {
  for (std::uint32_t scheme = 0; scheme < choices.schemes.size(); ++scheme) {
    if (choices.schemes[scheme].batch.threshold_bytes == 0) schemes_.push_back(scheme);
  }
  // Classes by number of elements, or by the number's power of two if that makes too many classes.
  const std::vector<std::uint32_t> order = casync::backward_order(problem.model);
  std::map<std::int64_t, std::vector<std::uint32_t>, std::greater<>> by_size;
  for (const std::uint32_t g : order) by_size[problem.model.gradients[g].elements].push_back(g);
  if (by_size.size() > kMaxClasses) {
    by_size.clear();
    for (const std::uint32_t g : order) {
      const auto elements = static_cast<std::uint64_t>(problem.model.gradients[g].elements);
      by_size[std::bit_width(elements)].push_back(g);
    }
  }
  for (const auto& [size, gradients] : by_size) {
    SizeClass& one = classes_.emplace_back(SizeClass{gradients, {}});
    for (const std::uint32_t g : gradients) {
      for (const casync::Decision& decision : choices.gradients[g]) {
        if (std::ranges::find(one.decisions, decision) == one.decisions.end()) {
          one.decisions.push_back(decision);
        }
      }
    }
  }
}

std::span<const Neighbourhoods::Row> Neighbourhoods::rows() {
  static constexpr std::array kRows = {
      Row{"schemes", "another topology, bulk rule or transfer order",
          &Neighbourhoods::scheme_moves},
      Row{"classes", "all gradients of a size", &Neighbourhoods::class_moves},
      Row{"parts", "the first or last of a size that backward completes",
          &Neighbourhoods::part_moves},
      Row{"singles", "one gradient", &Neighbourhoods::single_moves},
      Row{"pairs", "two gradients: exchanged, or each anything", &Neighbourhoods::pair_moves},
  };
  return kRows;
}

std::int32_t Neighbourhoods::find(std::size_t g, const casync::Decision& decision) const {
  const std::vector<casync::Decision>& options = choices_.gradients[g];
  const auto found = std::ranges::find(options, decision);
  return found == options.end() ? -1 : static_cast<std::int32_t>(found - options.begin());
}

Move Neighbourhoods::set(const Candidate& candidate, const SizeClass& size, std::size_t first,
                         std::size_t last, const casync::Decision& decision) const {
  Move move;
  for (std::size_t i = first; i < last; ++i) {
    const std::uint32_t g = size.gradients[i];
    const std::int32_t option = find(g, decision);
    if (option >= 0 && option != candidate.options[g]) {
      move.changes.push_back({g, static_cast<std::uint16_t>(option)});
    }
  }
  return move;
}

std::vector<Move> Neighbourhoods::scheme_moves(const Candidate& candidate, Draws& draws) const {
  std::vector<Move> moves;
  for (const std::uint32_t scheme : schemes_) {
    if (scheme != candidate.scheme) {
      moves.push_back({.scheme = static_cast<std::int32_t>(scheme)});
    }
  }
  shuffle(moves, draws);
  return moves;
}

std::vector<Move> Neighbourhoods::class_moves(const Candidate& candidate, Draws&) const {
  std::vector<Move> moves;
  for (const SizeClass& size : classes_) {
    for (const casync::Decision& decision : size.decisions) {
      Move move = set(candidate, size, 0, size.gradients.size(), decision);
      if (!move.changes.empty()) moves.push_back(std::move(move));
    }
  }
  return moves;  // the largest class first, since it matters most
}

std::vector<Move> Neighbourhoods::part_moves(const Candidate& candidate, Draws& draws) const {
  std::vector<Move> moves;
  for (const SizeClass& size : classes_) {
    const std::size_t count = size.gradients.size();
    for (std::size_t part = count / 2; part > 1; part /= 2) {
      for (const casync::Decision& decision : size.decisions) {
        for (Move& move : std::array{set(candidate, size, 0, part, decision),
                                     set(candidate, size, count - part, count, decision)}) {
          if (!move.changes.empty()) moves.push_back(std::move(move));
        }
      }
    }
  }
  shuffle(moves, draws);
  return moves;
}

std::vector<Move> Neighbourhoods::single_moves(const Candidate& candidate, Draws& draws) const {
  std::vector<Move> moves;
  for (std::uint32_t g = 0; g < candidate.options.size(); ++g) {
    for (std::uint16_t option = 0; option < choices_.gradients[g].size(); ++option) {
      if (option != candidate.options[g]) moves.push_back({.changes = {{g, option}}});
    }
  }
  shuffle(moves, draws);
  return moves;
}

std::vector<Move> Neighbourhoods::all_pairs(const Candidate& candidate) const {
  std::vector<Move> moves;
  for (std::uint32_t a = 0; a < candidate.options.size(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      for (std::uint16_t i = 0; i < choices_.gradients[a].size(); ++i) {
        for (std::uint16_t j = 0; j < choices_.gradients[b].size(); ++j) {
          if (i == candidate.options[a] || j == candidate.options[b]) continue;
          if (moves.size() == kMaxListedPairs) return {};
          moves.push_back({.changes = {{a, i}, {b, j}}});
        }
      }
    }
  }
  return moves;
}

std::vector<Move> Neighbourhoods::pair_moves(const Candidate& candidate, Draws& draws) const {
  std::vector<Move> moves = all_pairs(candidate);
  if (!moves.empty()) {
    shuffle(moves, draws);
    return moves;
  }
  const std::size_t count = candidate.options.size();
  if (count < 2) return moves;
  for (std::size_t i = 0; i < kPairsPerGradient * count; ++i) {
    const auto a = static_cast<std::uint32_t>(draws() % count);
    const auto b = static_cast<std::uint32_t>((a + 1 + draws() % (count - 1)) % count);
    const std::int32_t to_a = find(a, choices_.gradients[b][candidate.options[b]]);
    const std::int32_t to_b = find(b, choices_.gradients[a][candidate.options[a]]);
    const bool exchange = draws() % 2 == 0 && to_a >= 0 && to_b >= 0;
    const auto any = [&](std::uint32_t g) {
      return static_cast<std::uint16_t>(draws() % choices_.gradients[g].size());
    };
    const std::uint16_t option_a = exchange ? static_cast<std::uint16_t>(to_a) : any(a);
    const std::uint16_t option_b = exchange ? static_cast<std::uint16_t>(to_b) : any(b);
    if (option_a == candidate.options[a] && option_b == candidate.options[b]) continue;
    moves.push_back({.changes = {{a, option_a}, {b, option_b}}});
  }
  return moves;
}

Move Neighbourhoods::kick(const Candidate& candidate, Draws& draws) const {
  Move move;
  if (classes_.empty()) return move;
  const std::uint64_t sort = draws() % 4;
  if (sort == 0 && schemes_.size() > 1) {
    move.scheme = static_cast<std::int32_t>(schemes_[draws() % schemes_.size()]);
  }
  const SizeClass& size = classes_[draws() % classes_.size()];
  if (sort <= 1) {  // consecutive gradients of one class
    const std::size_t first = draws() % size.gradients.size();
    const std::size_t last = first + 1 + draws() % (size.gradients.size() - first);
    const Move stretch =
        set(candidate, size, first, last, size.decisions[draws() % size.decisions.size()]);
    move.changes = stretch.changes;
    return move;
  }
  const std::size_t count = candidate.options.size();
  const std::size_t changes = 2 + draws() % std::max<std::size_t>(2, count / 8);
  for (std::size_t i = 0; i < changes; ++i) {  // gradients drawn from the whole model
    const auto g = static_cast<std::uint32_t>(draws() % count);
    move.changes.push_back({g, static_cast<std::uint16_t>(draws() % choices_.gradients[g].size())});
  }
  return move;
}

}  // namespace hipress::planner
