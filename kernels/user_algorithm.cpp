#include "kernels/user_algorithm.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/compll/compiler.hpp"
#include "kernels/isa.hpp"
#include "kernels/program_cache.hpp"

extern char** environ;

namespace hipress::kernels {

namespace {

namespace fs = std::filesystem;

/// As the built-in algorithms are compiled for the fastest instruction set here: what is cached may
/// be found by another processor, which then has the same one.
std::vector<std::string> compiler_flags() {
  std::vector<std::string> flags = {"-std=c++20", "-O3", "-ffp-contract=off", "-fPIC",
                                    "-shared",    "-w",  "-DHIPRESS_PLUGIN"};
  const auto add = [&](std::initializer_list<const char*> more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  if (best_isa() == Isa::kAvx2) add({"-mavx2", "-mf16c"});
  if (best_isa() == Isa::kAvx512) {
    add({"-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mf16c"});
  }
  return flags;
}

/// What the machine code depends on besides the headers.
std::string identity(const std::string& code) {
  std::string all = code + io::cxx_compiler();
  for (const std::string& flag : compiler_flags()) all += flag;
  return all;
}

/// The compiler as the command that CXX says, "ccache g++ -m64" included.
std::vector<std::string> compiler_command() {
  std::istringstream text(io::cxx_compiler());
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty()) throw io::RunError("CXX names no C++ compiler: it is blank; unset it");
  return words;
}

/// Runs a program, its output going to a file, and returns its exit status; 127 if it cannot be
/// started.
int run(std::vector<std::string> words, const fs::path& output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Compiles `code` into `library`, which appears at once and complete.
void build(const std::string& path, const std::string& code, const fs::path& library) {
  std::vector<std::string> words = compiler_command();
  // Several processes may build the same one at a time.
  const std::string mine = fmt::format("{}.{}", library.string(), getpid());
  const std::string source = mine + ".cpp", log = mine + ".log", made = mine + ".so";
  io::write_file(source, [&](std::ostream& out) { out << code; });
  const std::vector<std::string> flags = compiler_flags();
  words.insert(words.end(), flags.begin(), flags.end());
  for (const std::string& word :
       {std::string("-I"), include_root(), source, std::string("-o"), made}) {
    words.push_back(word);
  }
  const int status = run(words, log);
  std::error_code ignored;
  if (status != 0) {
    const std::string said = fs::exists(log, ignored) ? io::read_file(log).substr(0, 2000) : "";
    for (const std::string& left : {source, log, made}) fs::remove(left, ignored);
    throw io::RunError(
        status == 127
            ? fmt::format("{}: there is no C++ compiler '{}' to compile it with; install one "
                          "(apt-get install g++) or name it in CXX",
                          path, io::cxx_compiler())
            : fmt::format("{}: the C++ compiler '{}' failed on the generated code:\n{}", path,
                          io::cxx_compiler(), said));
  }
  fs::rename(made, library);
  for (const std::string& left : {source, log}) fs::remove(left, ignored);
}

const CompiledAlgorithm& open(const std::string& path, const fs::path& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* const symbol = handle == nullptr ? nullptr : dlsym(handle, "hipress_program");
  if (symbol == nullptr) {
    throw io::RunError(
        fmt::format("{}: {} cannot be loaded: {}; remove it", path, library.string(), dlerror()));
  }
  return *static_cast<const CompiledAlgorithm*>(symbol);
}

}  // namespace

const UserProgram& load_program(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, UserProgram> loaded;  // by library
  const std::lock_guard lock(mutex);
  const compll::Compiled compiled = compll::compile(path);
  if (!compiled.program.decoder) {
    throw io::InputError(
        path, 0,
        "holds an encoder whose decoder is missing; put it into this file, or into "
        "one called …Decode.pse beside …Encode.pse");
  }
  const fs::path library = cache_file(identity(compiled.code), ".so");
  if (const auto known = loaded.find(library.string()); known != loaded.end()) return known->second;
  if (!fs::exists(library)) build(path, compiled.code, library);
  const UserProgram program{&open(path, library), path, compiled.code};
  return loaded.emplace(library.string(), program).first->second;
}

}  // namespace hipress::kernels
