#include "kernels/program_cache.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::kernels {

namespace fs = std::filesystem;

std::string include_root() {
  return fs::path(io::data_file("kernels/export.hpp")).parent_path().parent_path().string();
}

std::string cache_file(const std::string& inputs, const std::string& ending) {
  std::vector<fs::path> headers;
  for (const fs::directory_entry& entry : fs::directory_iterator(include_root() + "/kernels")) {
    const fs::path kind = entry.path().extension();
    if (kind == ".hpp" || kind == ".cuh") headers.push_back(entry.path());
  }
  std::sort(headers.begin(), headers.end());
  std::string all = inputs;
  for (const fs::path& header : headers) all += io::read_file(header.string());
  const fs::path folder = io::cache_folder();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw io::InputError(folder.string(), 0, "cannot be made: " + error.message());
  return (folder / (io::fingerprint(all) + ending)).string();
}

}  // namespace hipress::kernels
