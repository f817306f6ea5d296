#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::io {

/// Expands alternatives in parameter values: "powersgd(rank=1|2)" gives 2 texts, "x(a=1|2,b=3|4)"
/// gives 4. The last parameter changes fastest. A text without alternatives gives itself. Throws
/// std::invalid_argument if there would be more than `most` texts, before any is made; its message
/// calls them `what`, such as "algorithms".
std::vector<std::string> alternatives(std::string_view text, std::size_t most,
                                      std::string_view what);

/// First text of alternatives().
std::string first_alternative(std::string_view text);

}  // namespace hipress::io
