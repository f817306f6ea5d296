#include "kernels/codec/algorithm_list.hpp"

namespace hipress::kernels {

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
  const std::string_view name = text.substr(0, text.find('('));
  const std::size_t first = name.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return name.substr(first, name.find_last_not_of(' ') - first + 1);
}

std::optional<std::string> program_file(std::string_view text) {
  const std::string_view name = name_of_algorithm(text);
  if (!name.ends_with(".pse")) return std::nullopt;
  return std::string(name);
}

}  // namespace hipress::kernels
