#include "models/listings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"

namespace hipress::models {
namespace {

using ListedShape = TensorList::Shape;

struct ListedTensor {
  std::string name;
  ListedShape shape;
};

constexpr std::string_view kSize = "torch.Size";

/// Parses a line such as "layers.0.weight torch.Size([4096, 4096])"; separators may vary.
std::optional<ListedTensor> tensor_in(std::string_view line) {
  const auto in_name = [](char one) {
    return std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_' || one == '.' ||
           one == '/' || one == '-';
  };
  const std::size_t close = line.find_last_of(")]");
  if (close == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find_last_not_of(")]", close);
  std::size_t open = line.find_last_of("([", close);
  if (end == std::string_view::npos || open == std::string_view::npos) return std::nullopt;
  ListedTensor found;
  std::string digits;
  const std::string_view inside = open < end ? line.substr(open + 1, end - open) : "";
  for (const char one : std::string(inside) + ",") {
    if (std::isdigit(static_cast<unsigned char>(one)) != 0) {
      digits += one;
    } else if (one == ',' || one == ' ') {
      if (digits.size() > 15) return std::nullopt;
      if (!digits.empty()) found.shape.push_back(std::stoll(digits));
      digits.clear();
    } else {
      return std::nullopt;
    }
  }
  const auto start = std::ranges::find_if(line, in_name);
  const auto stop = std::find_if_not(start, line.end(), in_name);
  const std::string_view output = ":0";  // suffix of TensorFlow's names, as in "dense/kernel:0"
  if (start == line.end() || stop - line.begin() > static_cast<std::ptrdiff_t>(open)) {
    return std::nullopt;
  }
  // Separators are required between a name and its shape. torch.Size is the only allowed word.
  const std::size_t behind = static_cast<std::size_t>(stop - line.begin());
  std::string between(line.substr(behind, open - behind));
  if (between.starts_with(output)) between.erase(0, output.size());
  if (const std::size_t word = between.find(kSize); word != std::string::npos) {
    between.erase(word, kSize.size());
  }
  constexpr std::string_view kSeparators = " \t:,|='\"";
  const bool separated = !between.empty() && kSeparators.find(between[0]) != std::string::npos;
  if (!separated || between.find_first_not_of(" \t:,|='\"(") != std::string::npos) {
    return std::nullopt;
  }
  found.name = std::string(start, stop);
  return found;
}

/// Number in a word of digits, with or without commas; nullopt for other words.
std::optional<std::int64_t> count_in(const std::string& word) {
  std::string digits = word;
  std::erase(digits, ',');
  const bool counts = !digits.empty() && digits.size() < 16 && word.back() != ',' &&
                      std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c); });
  return counts ? std::optional<std::int64_t>(std::stoll(digits)) : std::nullopt;
}

/// Words of a line, without the characters that draw boxes and trees.
std::vector<std::string> words_of(std::string line) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool ascii = static_cast<unsigned char>(line[at]) < 0x80;
    if (!ascii || line[at] == '|') line[at] = ' ';
  }
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Name of a row's layer: "2-1.Linear" for torchinfo's "Linear: 2-1" and "Linear (fc): 2-1", else
/// the first word.
std::string layer_name(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (words[i].ends_with(':')) {
      return fmt::format("{}.{}", words[i + 1], words[0].substr(0, words[0].find(':')));
    }
  }
  return words.front();
}

/// Number of parameters in a table's row; nullopt without any, or for frozen ones, "(1,024)". It
/// follows the name and the output's shape, whose numbers end in a comma or bracket.
std::optional<std::int64_t> parameters_in(const std::vector<std::string>& words) {
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    if (const auto count = count_in(*word)) return *count > 0 ? count : std::nullopt;
    const bool bracketed = word->size() > 2 && word->front() == '(' && word->back() == ')';
    if (bracketed && count_in(word->substr(1, word->size() - 2))) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool begins_listing(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text.find('\0') != std::string_view::npos) return false;
  const std::size_t end = std::min(text.find('\n', start), text.size());
  const bool is_json = text[start] == '{' || text[start] == '[';
  return !is_json && tensor_in(text.substr(start, end - start)).has_value();
}

void add_listing(const std::string& path, TensorList& tensors) {
  int number = 0;
  for (const std::string& line : io::read_lines(path)) {
    ++number;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const auto found = tensor_in(line);
    if (!found) {
      throw io::InputError(path, number,
                           fmt::format("must be a name and a shape, layers.0.weight (4096, 1024), "
                                       "got {}",
                                       io::quote(line)));
    }
    tensors.add(found->name, found->shape, number);
  }
}

std::string add_table(const std::string& path, TensorList& tensors) {
  int number = 0;
  std::optional<std::int64_t> total;
  for (const std::string& line : io::read_lines(path)) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 3) continue;
    if (words[0] == "Total" && words[1] == "params:") {
      total = count_in(words[2]);
      break;  // the rest of the table sums up
    }
    if (const auto count = parameters_in(words)) tensors.add(layer_name(words), *count, number);
  }
  if (!total || *total == tensors.elements()) return {};
  return fmt::format("the table's layers have {} parameters, its total says {}", tensors.elements(),
                     *total);
}

}  // namespace hipress::models
