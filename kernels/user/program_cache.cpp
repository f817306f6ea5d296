#include "kernels/user/program_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "io/digest.hpp"
#include "io/environment.hpp"
#include "io/file.hpp"

namespace hipress::kernels {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxManifestBytes = 4096;
constexpr double kLongestWork_s = 86400;
constexpr const char* kRemedy = "set HIPRESS_CACHE to a folder of yours";

std::string manifest_name(const std::string& key) { return key + ".manifest"; }

std::string manifest(const std::string& key, std::string_view program) {
  return fmt::format("hipress.cache/1\nsources sha256:{}\nprogram sha256:{}\n", key,
                     io::to_hex(io::sha256(program)));
}

}  // namespace

std::string include_root() {
  const fs::path header = fs::absolute(io::data_file("kernels/export/export.hpp"));
  return header.parent_path().parent_path().parent_path().string();
}

std::string program_key(const std::vector<std::string>& inputs) {
  std::vector<fs::path> headers;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(include_root() + "/kernels")) {
    const fs::path kind = entry.path().extension();
    if (kind == ".hpp" || kind == ".cuh") headers.push_back(entry.path());
  }
  std::sort(headers.begin(), headers.end());
  std::string all;
  // Length-prefixed, so that different lists never give the same text.
  const auto add = [&](const std::string& text) { all += fmt::format("{} {}", text.size(), text); };
  for (const std::string& input : inputs) add(input);
  for (const fs::path& header : headers) add(io::read_file(header.string()));
  return io::to_hex(io::sha256(all));
}

ProgramCache::ProgramCache()
    : folder_(io::cache_folder(), kRemedy), work_(folder_.path() + "/work", kRemedy) {
  work_.remove_older_than(kLongestWork_s);
}

std::optional<std::string> ProgramCache::find(const std::string& key,
                                              const std::string& ending) const {
  const auto said = folder_.read(manifest_name(key), kMaxManifestBytes);
  if (!said) return std::nullopt;
  std::optional<std::string> program = folder_.read(key + ending, kMaxBytes);
  if (!program || *said != manifest(key, *program)) return std::nullopt;
  return program;
}

void ProgramCache::keep(const std::string& key, const std::string& ending,
                        std::string_view program) const {
  const std::string said = manifest(key, program);
  folder_.write({{key + ending, program}, {manifest_name(key), said}});
}

}  // namespace hipress::kernels
