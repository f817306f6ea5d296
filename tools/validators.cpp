#include "tools/validators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::tools {

CLI::Validator count_from(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](const std::string& text) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    // CLI11 would read a leading 0 as octal.
    const bool decimal = text == "0" || !text.starts_with('0');
    if (error == std::errc() && stop == end && decimal && value >= least && value <= most) {
      return std::string();
    }
    return fmt::format("must be a whole number from {} to {}, got {}", least, most,
                       io::quote(text));
  };
  // The help does not show a limit that only comes from the type.
  const bool open = most >= INT64_MAX;
  return CLI::Validator(check, open ? (least > 0 ? fmt::format("[from {}]", least) : std::string())
                                    : fmt::format("[{} - {}]", least, most));
}

CLI::Validator file_name() {
  const auto check = [](const std::string& text) {
    return std::string(text.empty() ? "the name of a file must not be empty" : "");
  };
  return CLI::Validator(check, "");
}

CLI::Validator word_of(std::vector<std::string> words) {
  const std::string list = fmt::format("{{{}}}", fmt::join(words, ","));
  const auto check = [words = std::move(words)](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    return io::none_of(text, std::vector<std::string_view>(words.begin(), words.end()));
  };
  return CLI::Validator(check, list);
}

CLI::Validator number_from(double least, double most) {
  const auto check = [least, most](const std::string& text) {
    double value = 0;
    // NaN fails every comparison.
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) {
      return std::string();
    }
    return fmt::format("must be a number from {} to {}, got {}", least, most, io::quote(text));
  };
  return CLI::Validator(check, fmt::format("[{} - {}]", least, most));
}

}  // namespace hipress::tools
