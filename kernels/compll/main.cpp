// hipress-compll: programs in, operators out.

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "io/file.hpp"
#include "io/tool.hpp"
#include "kernels/compll/compiler.hpp"

namespace {

using namespace hipress;

struct Options {
  std::string file;
  std::string target = "cuda";
  std::string folder = ".";
  bool body = false;
};

int run(const Options& options) {
  try {
    const compll::Compiled compiled = compll::compile(options.file);
    for (const std::string& note : compiled.notes) fmt::print(stderr, "{}\n", note);
    if (!options.body) return 0;
    const std::filesystem::path path = std::filesystem::path(options.folder) /
                                       (std::filesystem::path(options.file).stem().string() +
                                        (options.target == "cuda" ? ".cu" : ".cpp"));
    io::write_file(path.string(), [&](std::ostream& out) { out << compiled.code; });
    fmt::print("{}\n", path.string());
    return 0;
  } catch (const compll::CompileError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return io::run_tool(
      argc, argv,
      {"hipress-compll",
       "Compiles a compression algorithm written in CompLL; without -b only checks it.",
       "hipress-compll kernels/algorithms/TernGradEncode.pse -b --target cpp -o build"},
      [&](CLI::App& app) {
        app.add_option("FILE", options.file,
                       "the program; its other half lies beside it "
                       "(XEncode.pse, XDecode.pse) or in it")
            ->required();
        app.add_flag("-b,--body", options.body, "write the operator's body, NAME.cu or NAME.cpp");
        app.add_option("--target", options.target, "what compiles the body")
            ->check(CLI::IsMember({"cuda", "cpp"}))
            ->capture_default_str();
        app.add_option("-o,--output", options.folder, "folder for what is written")
            ->check(CLI::ExistingDirectory)
            ->capture_default_str();
      },
      [&] { return run(options); });
}
