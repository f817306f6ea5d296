#pragma once

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace hipress::planner {

struct ToolRun {
  int status = -1;
  std::string out;
  std::string err;
};

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Reads a file of this project; data() reads one of tests/data.
inline std::string source_file(const std::string& path) {
  return read_whole(std::filesystem::path(HIPRESS_SOURCE_DIR) / path);
}
inline std::string data(const std::string& name) { return source_file("tests/data/" + name); }

/// A temporary folder in which tools are run as a user would run them.
class Workplace {
 public:
  Workplace()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("hipress_tool_test_{}", ::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Workplace() { std::filesystem::remove_all(path_); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  /// Runs a command line in the folder. It starts with a tool's name: "hipress-plan --nnodes 4".
  ToolRun run(const std::string& command) const {
    const std::string line = "cd '" + path_.string() +
                             "' && PATH='" HIPRESS_TOOL_DIR "':\"$PATH\" " + command +
                             " >stdout.log 2>stderr.log";
    const int status = std::system(line.c_str());
    ToolRun result = {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("stdout.log"),
                      read("stderr.log")};
    std::filesystem::remove(path_ / "stdout.log");
    std::filesystem::remove(path_ / "stderr.log");
    return result;
  }

  const std::filesystem::path& path() const { return path_; }
  std::string read(const std::string& name) const { return read_whole(path_ / name); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

/// Returns the command on the second line of --help, after "Example:".
inline std::string documented_example(const Workplace& workplace, const std::string& tool) {
  const std::string help = workplace.run(tool + " --help").out;
  const std::size_t begin = help.find('\n') + 1;
  return help.substr(begin, help.find('\n', begin) - begin);
}

}  // namespace hipress::planner
