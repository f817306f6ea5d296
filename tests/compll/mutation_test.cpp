// Tests that programs with random damage give an error or code, never a crash or an endless loop.

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "io/file.hpp"
#include "tests/compll/check.hpp"

namespace hipress::compll {
namespace {

std::vector<std::string> programs() {
  std::vector<std::string> texts;
  for (const char* folder : {"/kernels/algorithms", "/tests/compll/data"}) {
    std::vector<std::string> paths;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(HIPRESS_SOURCE_DIR) + folder)) {
      if (entry.path().extension() == ".pse") paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) texts.push_back(io::read_file(path));
  }
  return texts;
}

/// Splits a text into names, numbers, signs and blanks, which mutations move.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const char c : text) {
    const bool joins = !words.empty() && std::isalnum(static_cast<unsigned char>(c)) &&
                       std::isalnum(static_cast<unsigned char>(words.back().back()));
    if (joins) {
      words.back() += c;
    } else {
      words.emplace_back(1, c);
    }
  }
  return words;
}

TEST_CASE("damaged programs give an error or code") {
  const std::vector<std::string> texts = programs();
  REQUIRE(texts.size() >= 13);
  std::mt19937 generator(1);
  const auto below = [&](std::size_t n) { return generator() % n; };
  int compiled = 0, refused = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    std::vector<std::string> words = words_of(texts[below(texts.size())]);
    const std::vector<std::string> others = words_of(texts[below(texts.size())]);
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      const std::size_t at = below(words.size());
      switch (below(5)) {
        case 0:
          words.erase(words.begin() + static_cast<long>(at));
          if (words.empty()) words.emplace_back(" ");
          break;
        case 1:
          words.insert(words.begin() + static_cast<long>(at), others[below(others.size())]);
          break;
        case 2:
          words[at] = others[below(others.size())];
          break;
        case 3:
          std::swap(words[at], words[below(words.size())]);
          break;
        default:
          words[at] = std::string(1, static_cast<char>(below(256)));
      }
    }
    std::string text;
    for (const std::string& word : words) text += word;
    const std::string said = complaint(text);
    if (said.empty()) {
      ++compiled;
    } else {
      ++refused;
      REQUIRE(said.starts_with("t.pse:"));
    }
  }
  // Programs whose comments or numbers were changed still compile; most other changes are errors.
  CHECK(compiled > 100);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace hipress::compll
