#include "kernels/user/algorithm.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "io/child.hpp"
#include "io/digest.hpp"
#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/interrupts.hpp"
#include "io/memory_file.hpp"
#include "kernels/compll/compiler.hpp"
#include "kernels/host/isa.hpp"
#include "kernels/user/program_cache.hpp"

namespace hipress::kernels {

namespace {

/// Compiler flags: those of the built-in algorithms for the fastest instruction set here. They are
/// part of the cache key, so a different processor finds a cached program only if it has the same
/// instruction set.
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

/// Inputs, besides the headers, that determine the machine code: parts of the cache key.
std::vector<std::string> inputs_of(const std::string& code) {
  std::vector<std::string> inputs = compiler_flags();
  inputs.push_back(io::cxx_compiler());
  inputs.push_back(code);
  return inputs;
}

/// Words of the compiler command in CXX, as in "ccache g++ -m64".
std::vector<std::string> compiler_command() {
  std::istringstream text(io::cxx_compiler());
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  // Absolute, because the compiler is started in a different folder.
  if (!words.empty() && words.front().find('/') != std::string::npos) {
    words.front() = std::filesystem::absolute(words.front()).string();
  }
  if (words.empty()) throw io::RunError("CXX names no C++ compiler: it is blank; unset it");
  return words;
}

[[noreturn]] void complain(const std::string& path, const io::ChildResult& result,
                           double timeout_s) {
  const std::string compiler = io::quote(io::cxx_compiler());
  if (result.start_error != 0) {
    throw io::RunError(fmt::format(
        "{}: there is no C++ compiler {} to compile it with ({}); install one (apt-get install "
        "g++) or name it in CXX",
        path, compiler, std::strerror(result.start_error)));
  }
  if (result.timed_out) {
    throw io::RunError(
        fmt::format("{}: the C++ compiler {} was ended after {:g} s; let the program compute less, "
                    "or allow more time (hipress-exec `timeout`)",
                    path, compiler, timeout_s));
  }
  constexpr int kSignals = 128;
  if (result.status > kSignals) {
    throw io::RunError(fmt::format(
        "{}: the C++ compiler {} was ended by signal {}; it may need more memory: free some", path,
        compiler, result.status - kSignals));
  }
  constexpr std::size_t kShown = 2000;
  throw io::RunError(fmt::format("{}: the C++ compiler {} failed on the generated code:\n{}", path,
                                 compiler, result.output.substr(0, kShown)));
}

/// Compiles `code` to a library. The compiler reads the code from standard input, and puts all its
/// files into the cache's work folder.
std::string build(const std::string& path, const std::string& code, const io::PrivateFolder& work,
                  double timeout_s) {
  constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  constexpr std::size_t kRandomBytes = 16;
  const std::string name = io::to_hex(io::random_bytes(kRandomBytes)) + ".so";
  const io::DoomedFile made(work.path() + "/" + name);
  std::vector<std::string> words = compiler_command();
  const std::vector<std::string> flags = compiler_flags();
  words.insert(words.end(), flags.begin(), flags.end());
  const std::string output = std::filesystem::absolute(made.path()).string();
  const std::string root = std::filesystem::absolute(include_root()).string();
  for (const std::string& word : {std::string("-I"), root, std::string("-o"), output,
                                  std::string("-x"), std::string("c++"), std::string("-")}) {
    words.push_back(word);
  }
  // For code from standard input, the compiler also searches its working directory for headers. Run
  // it in a folder without any, not in the tool's working directory.
  const std::string folder = std::filesystem::absolute(work.path()).string();
  const io::ChildResult result = io::run_child({.words = std::move(words),
                                                .input = code,
                                                .environment = {"TMPDIR=" + folder},
                                                .timeout_s = timeout_s,
                                                .folder = folder});
  std::optional<std::string> library = work.read(name, kMaxBytes);
  if (result.start_error != 0 || result.timed_out || result.status != 0 || !library) {
    complain(path, result, timeout_s);
  }
  return std::move(*library);
}

/// Loads a library from memory; it is never unloaded.
const CompiledAlgorithm& open(const std::string& path, const std::string& library) {
  // Keep the descriptors open: the path of a reused one would name the same library to the loader.
  static std::vector<std::unique_ptr<io::MemoryFile>> loaded;
  const io::MemoryFile& file = *loaded.emplace_back(std::make_unique<io::MemoryFile>(library));
  void* const handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* const symbol = handle == nullptr ? nullptr : dlsym(handle, "hipress_program");
  if (symbol == nullptr) {
    const char* const reason = dlerror();
    throw io::RunError(fmt::format(
        "{}: its compiled code cannot be loaded: {}; empty {}, or name another compiler in CXX",
        path, reason != nullptr ? reason : "it has no program", io::cache_folder()));
  }
  return *static_cast<const CompiledAlgorithm*>(symbol);
}

}  // namespace

const UserProgram& load_program(const std::string& path, double compile_timeout_s) {
  static std::mutex mutex;
  static std::map<std::string, UserProgram> loaded;  // by key
  const std::lock_guard lock(mutex);
  const compll::Compiled compiled = compll::compile(path);
  if (!compiled.program.decoder) {
    throw io::InputError(
        path, 0,
        "holds an encoder whose decoder is missing; put it into this file, or into "
        "one called …Decode.pse beside …Encode.pse");
  }
  const std::string key = program_key(inputs_of(compiled.code));
  if (const auto known = loaded.find(key); known != loaded.end()) return known->second;
  constexpr const char* kEnding = ".so";
  const ProgramCache cache;
  std::optional<std::string> library = cache.find(key, kEnding);
  if (!library) {
    library = build(path, compiled.code, cache.work(), compile_timeout_s);
    cache.keep(key, kEnding, *library);
  }
  const UserProgram program{&open(path, *library), path, compiled.code};
  return loaded.emplace(key, program).first->second;
}

}  // namespace hipress::kernels
