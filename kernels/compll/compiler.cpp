#include "kernels/compll/compiler.hpp"

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "io/error.hpp"
#include "kernels/compll/elaborate.hpp"
#include "kernels/compll/emit.hpp"

namespace hipress::compll {

namespace {

/// The file beside `path` with the algorithm's other half, if there is one.
std::filesystem::path other_half(const std::filesystem::path& path) {
  constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {"Encode", "Decode"}, {"Decode", "Encode"}, {"_encode", "_decode"}, {"_decode", "_encode"}};
  const std::string stem = path.stem().string();
  for (const auto& [ending, other] : kEndings) {
    if (!stem.ends_with(ending)) continue;
    std::filesystem::path beside = path;
    beside.replace_filename(stem.substr(0, stem.size() - ending.size()) + std::string(other) +
                            path.extension().string());
    if (std::filesystem::exists(beside)) return beside;
  }
  return {};
}

}  // namespace

Compiled compile(const std::string& path) {
  const Source source = read_source(path);
  std::vector<const Source*> sources = {&source};
  Source other;
  if (const auto beside = other_half(path); !beside.empty()) {
    other = read_source(beside.string());
    sources.push_back(&other);
  }
  Elaborated elaborated = elaborate(sources);
  if (!elaborated.program.encoder) {
    throw io::InputError(path, 0,
                         "holds a decoder whose encoder is missing; put it into this file, or into "
                         "one called …Encode.pse beside …Decode.pse");
  }
  std::string origin = std::filesystem::path(path).filename().string();
  if (sources.size() == 2) {
    origin += " and " + std::filesystem::path(other.path).filename().string();
  }
  try {
    std::string code = emit(elaborated.program, origin);
    return {std::move(elaborated.program), std::move(code), std::move(elaborated.notes)};
  } catch (const std::length_error& error) {
    throw io::InputError(path, 0, error.what());
  }
}

}  // namespace hipress::compll
