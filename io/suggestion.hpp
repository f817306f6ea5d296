#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hipress::io {

/// The known word with the smallest edit distance from `word`; the first one on ties. An edit
/// inserts, deletes or replaces a letter, or swaps two neighbours. Upper and lower case are equal,
/// as are hyphens and underscores. If `word` has two letters or more, a known word that begins with
/// it has distance 0.5, and one that has it after a hyphen 0.75. Empty if the distance exceeds both
/// 2 and half of `word`'s length, if no letter is kept, or if `word` has more than 200 bytes.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// Suffix for an error message: `; did you mean 'bandwidth'?`. Empty if no known word is near.
std::string question(std::string_view word, std::span<const std::string_view> known);

/// Suffix for an error message about an unknown name: `; did you mean 'bandwidth'? (known:
/// bandwidth, latency)`, without the question if no known word is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// Error message for a value that is not in a list: "must be one of cpu, cuda, got 'cdua'; did you
/// mean 'cuda'?".
std::string none_of(std::string_view word, std::span<const std::string_view> known);

/// Separator between an error message and the list of known words that it appends: `; did you mean
/// 'bandwidth'? `, or `; ` if no known word is near.
std::string before_known(std::string_view word, std::span<const std::string_view> known);

}  // namespace hipress::io
