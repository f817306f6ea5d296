// hipress-compll: compiles CompLL programs into operators.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "io/file.hpp"
#include "io/input_file.hpp"
#include "kernels/compll/compiler.hpp"
#include "kernels/compll/wrappers.hpp"
#include "tools/compll/output.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"

namespace {

using namespace hipress;

/// Path of a program: `name` if that file exists, else the shipped program of that name.
std::string file_of(const std::string& name) {
  const std::vector<std::string> shipped = io::data_names("kernels/algorithms", ".pse");
  const bool is_shipped =
      name.ends_with(".pse") &&
      std::ranges::find(shipped, name.substr(0, name.size() - 4)) != shipped.end();
  return is_shipped && !io::is_file(name) ? io::data_file("kernels/algorithms/" + name) : name;
}

int run(compll::Options options) {
  options.file = file_of(options.file);
  check(options);
  try {
    const compll::Compiled compiled = compll::compile(options.file);
    check(options, compiled.program);
    write_all(options, compiled);
    say(options, compiled);
    return 0;
  } catch (const compll::CompileError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  compll::Options options;
  return tools::run_tool(
      argc, argv,
      {"hipress-compll",
       "Compiles a compression algorithm written in CompLL; without -b, -w and -r only checks "
       "it.\n-w -r -f FRAMEWORK writes one source with the whole operator of that framework.",
       "hipress-compll TerngradEncode.pse -b --target cpp", true},
      [&](CLI::App& app) {
        app.add_option("FILE", options.file,
                       "Program, or the name of a shipped one; its other half is beside it "
                       "(XEncode.pse, XDecode.pse) or in it")
            ->required();
        app.add_flag("-b,--body", options.body, "Write the operator's body, NAME.cu or NAME.cpp");
        app.add_flag("-w,--wrapper", options.wrapper,
                     "Write functions on a framework's tensors, with the body in them: "
                     "NAME_FRAMEWORK.hpp; with -r, all in one NAME_FRAMEWORK.cpp");
        app.add_flag("-r,--register", options.registration,
                     "Write the registration of these functions: NAME_FRAMEWORK.cpp");
        app.add_option("-f,--framework", options.framework,
                       "Framework of the operator that -w and -r write")
            ->check(tools::word_of(compll::framework_names()));
        app.add_option("--target", options.target,
                       "Target of the body: cuda, or cpp (default: cuda, with -w or -r cpp)")
            ->check(tools::word_of({"cuda", "cpp"}));
        app.add_option("-o,--output", options.folder, "Output folder")
            ->check(CLI::ExistingDirectory)
            ->capture_default_str();
        app.add_flag("-q,--quiet", options.quiet, "Print errors alone");
      },
      [&] { return run(options); });
}
