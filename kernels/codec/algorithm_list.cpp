#include "kernels/codec/algorithm_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hipress::kernels {
namespace {

/// The parameters of an algorithm's text, trimmed: "tau=0.25", …
std::vector<std::string_view> parameters_of(std::string_view text) {
  std::vector<std::string_view> found;
  const std::size_t open = parameters_at(text);
  if (open == std::string_view::npos) return found;
  std::string_view list = text.substr(open + 1, text.rfind(')') - open - 1);
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (const std::string_view one = trimmed(list.substr(0, comma)); !one.empty()) {
      found.push_back(one);
    }
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return found;
}

bool is_of(std::string_view parameter, std::string_view name) {
  return trimmed(parameter.substr(0, parameter.find('='))) == name;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split_algorithms(std::string_view list) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

std::string_view name_of_algorithm(std::string_view text) {
  return trimmed(text.substr(0, parameters_at(text)));
}

std::size_t parameters_at(std::string_view text) {
  constexpr std::string_view kProgram = ".pse";
  const std::size_t last = text.rfind('(');
  if (last == std::string_view::npos || trimmed(text).ends_with(kProgram)) {
    return std::string_view::npos;
  }
  return trimmed(text.substr(0, last)).ends_with(kProgram) ? last : text.find('(');
}

std::optional<std::string> parameter_of(std::string_view text, std::string_view name) {
  for (const std::string_view parameter : parameters_of(text)) {
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || !is_of(parameter, name)) continue;
    return std::string(trimmed(parameter.substr(equals + 1)));
  }
  return std::nullopt;
}

std::string with_parameter(std::string_view text, std::string_view name,
                           const std::optional<std::string>& value) {
  std::vector<std::string> parameters;
  if (value) parameters.push_back(fmt::format("{}={}", name, *value));
  for (const std::string_view parameter : parameters_of(text)) {
    if (!is_of(parameter, name)) parameters.emplace_back(parameter);
  }
  const std::string_view algorithm = name_of_algorithm(text);
  if (parameters.empty()) return std::string(algorithm);
  return fmt::format("{}({})", algorithm, fmt::join(parameters, ","));
}

std::optional<std::string> program_file(std::string_view text) {
  const std::string_view name = name_of_algorithm(text);
  if (!name.ends_with(".pse")) return std::nullopt;
  return std::string(name);
}

}  // namespace hipress::kernels
