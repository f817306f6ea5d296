#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hipress::io {

/// The known word that `word` was probably meant to be: the one at the least edit distance, and the
/// first of those at the same distance. Edits insert, delete or replace a letter, or swap two
/// neighbours; case, and a hyphen for an underscore, make no difference. A known word that begins
/// with `word` is at distance 1 at most. Empty if all are further away than half of `word`'s
/// letters and further than 2, so that no nonsense is proposed; words of more than 200 bytes are
/// near nothing.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// `; did you mean 'bandwidth'?`, to be appended to a complaint; empty when nothing is near.
std::string question(std::string_view word, std::span<const std::string_view> known);

/// The remedy for an unknown name, to be appended to a complaint: `; did you mean 'bandwidth'?
/// (known: bandwidth, latency)`, without the question when nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// A complaint about a value that is none of the words: "must be one of cpu, cuda, got 'cdua'; did
/// you mean 'cuda'?".
std::string none_of(std::string_view word, std::span<const std::string_view> known);

/// What stands between a complaint and the known words that it lists itself: `; did you mean
/// 'bandwidth'? `, or `; ` when nothing is near.
std::string before_known(std::string_view word, std::span<const std::string_view> known);

}  // namespace hipress::io
