#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hipress::io {

/// The known word nearest to `word` by edit distance; the first one on ties. Edits insert, delete
/// or replace a letter, or swap two neighbours; case and hyphen versus underscore do not count. A
/// known word that begins with `word` has distance 1 at most. Empty if the distance exceeds both 2
/// and half of `word`'s length. Words of more than 200 bytes match nothing.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// Suffix for a complaint: `; did you mean 'bandwidth'?`. Empty if no known word is near.
std::string question(std::string_view word, std::span<const std::string_view> known);

/// Suffix for a complaint about an unknown name: `; did you mean 'bandwidth'? (known: bandwidth,
/// latency)`. The question is left out if no known word is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// Complaint about a value outside of a list: "must be one of cpu, cuda, got 'cdua'; did you mean
/// 'cuda'?".
std::string none_of(std::string_view word, std::span<const std::string_view> known);

/// Separator between a complaint and its own list of known words: `; did you mean 'bandwidth'? `,
/// or `; ` if no known word is near.
std::string before_known(std::string_view word, std::span<const std::string_view> known);

}  // namespace hipress::io
