#include "kernels/compll/compiler.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "io/digest.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/compll/elaborate.hpp"
#include "kernels/compll/emit.hpp"

namespace hipress::compll {

namespace {

/// Path of the file with the algorithm's other half; empty if it does not exist.
std::filesystem::path other_half(const std::filesystem::path& path) {
  constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {"Encode", "Decode"}, {"Decode", "Encode"}, {"_encode", "_decode"}, {"_decode", "_encode"}};
  const std::string stem = path.stem().string();
  for (const auto& [ending, other] : kEndings) {
    if (!stem.ends_with(ending)) continue;
    std::filesystem::path beside = path;
    beside.replace_filename(stem.substr(0, stem.size() - ending.size()) + std::string(other) +
                            path.extension().string());
    if (io::is_file(beside.string())) return beside;
  }
  return {};
}

io::Digest digest_of(const std::vector<const Source*>& sources) {
  std::string all;
  for (const Source* source : sources) {
    all += fmt::format("{} ", source->text.size());  // marks where each source ends
    all += source->text;
  }
  return io::sha256(all);
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
  try {
    std::string code = emit(elaborated.program, digest_of(sources));
    return {std::move(elaborated.program), std::move(code), std::move(elaborated.notes)};
  } catch (const std::length_error& error) {
    throw io::InputError(path, 0, error.what());
  }
}

}  // namespace hipress::compll
