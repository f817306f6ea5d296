#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::io {

/// Expands alternatives in parameter values: "powersgd(rank=1|2)" gives 2 texts, "x(a=1|2,b=3|4)"
/// 4, with the last parameter changing fastest. The result for a text without alternatives is the
/// text. Throws std::invalid_argument, before it expands anything, for more than `most` texts;
/// `what` names them in the message.
std::vector<std::string> alternatives(std::string_view text, std::size_t most,
                                      std::string_view what);

/// First text of alternatives().
std::string first_alternative(std::string_view text);

}  // namespace hipress::io
