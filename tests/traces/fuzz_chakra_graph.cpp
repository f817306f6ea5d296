// Fuzzes the reader of exported graphs, with one file and with two. It must throw an error, or
// return a graph that can run.
//
//   build/fuzz/tests/traces/fuzz_chakra_graph -max_total_time=600 -max_len=8192 CORPUS

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "casync/task_graph.hpp"
#include "io/error.hpp"
#include "traces/chakra_graph.hpp"

namespace {

/// Folder for the files of this process, which removes it at its end.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("hipress_fuzz_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const Folder folder;
  if (size < 2) return 0;
  // End of the first file.
  const std::size_t cut = (std::size_t{data[0]} << 8 | data[1]) % (size - 1);
  const auto write = [&](std::uint32_t rank, std::size_t begin, std::size_t end) {
    std::ofstream(hipress::traces::chakra_file(folder.name(), rank), std::ios::binary)
        .write(reinterpret_cast<const char*>(data) + begin,
               static_cast<std::streamsize>(end - begin));
  };
  write(0, 2, cut == 0 ? size : 2 + (cut - 1));
  write(1, cut == 0 ? size : 2 + (cut - 1), size);
  try {
    const auto read = hipress::traces::read_chakra_graph(folder.name());
    hipress::casync::check(read.graph);
    for (hipress::casync::TaskId id = 0; id < read.graph.tasks(); ++id) {
      const auto& task = read.graph[id];
      (void)read.graph.factor_of(task);
      (void)read.graph.need(task);
    }
  } catch (const hipress::io::InputError&) {
  }
  return 0;
}
