#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::io {

/// The texts that one with alternatives stands for: "powersgd(rank=1|2)" for one with each value of
/// the parameter, "x(a=1|2,b=3|4)" for the four of all pairs, whose last value changes first. A
/// text without alternatives stands for itself. std::invalid_argument, before any of them is made,
/// if there are more than `most`; `what` calls them by name.
std::vector<std::string> alternatives(std::string_view text, std::size_t most,
                                      std::string_view what);

/// The first of them.
std::string first_alternative(std::string_view text);

}  // namespace hipress::io
