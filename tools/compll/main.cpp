// hipress-compll: programs in, operators out.

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "io/file.hpp"
#include "kernels/compll/compiler.hpp"
#include "kernels/compll/emit.hpp"
#include "kernels/compll/wrappers.hpp"
#include "tools/frame.hpp"

namespace {

using namespace hipress;

struct Options {
  std::string file;
  std::string target;
  std::string framework;
  std::string folder = ".";
  bool body = false, wrapper = false, registration = false;
};

/// What options say about each other.
void check(const Options& options) {
  const bool wraps = options.wrapper || options.registration;
  if (wraps && options.framework.empty()) {
    throw std::invalid_argument(fmt::format("-w and -r need a framework: give -f with one of {}",
                                            fmt::join(compll::framework_names(), ", ")));
  }
  if (!wraps && !options.framework.empty()) {
    throw std::invalid_argument(
        "-f says for which framework -w (wrapper) and -r (registration) are; give one of them");
  }
  if (wraps && options.target == "cuda") {
    throw std::invalid_argument(
        "-w and -r write operators for CPUs: leave --target cuda out, and write the CUDA body with "
        "a command of its own");
  }
}

/// What the program itself must be for what is asked.
void check(const Options& options, const compll::Program& program) {
  const bool cpp = options.wrapper || options.registration || options.target == "cpp";
  if (options.body && !cpp && !compll::runs_on_gpus(program)) {
    throw std::invalid_argument(fmt::format(
        "{}: the program runs on CPUs only: it is neither a quantiser nor a sparsifier, as "
        "kernels/compll/language.md describes them; make it one, or give --target cpp",
        options.file));
  }
}

bool wraps(const Options& options) { return options.wrapper || options.registration; }

compll::WrapperPart part_of(const Options& options) {
  if (!options.registration) return compll::WrapperPart::kWrapper;
  return options.wrapper ? compll::WrapperPart::kBoth : compll::WrapperPart::kRegistration;
}

std::string stem_of(const Options& options) {
  return std::filesystem::path(options.file).stem().string();
}

std::string body_file(const Options& options) {
  const bool cpp = wraps(options) || options.target == "cpp";
  return (std::filesystem::path(options.folder) / (stem_of(options) + (cpp ? ".cpp" : ".cu")))
      .string();
}

std::string operator_file(const Options& options) {
  const std::string name =
      compll::wrapper_file(stem_of(options), options.framework, part_of(options));
  return (std::filesystem::path(options.folder) / name).string();
}

/// Writes a file, prints its name, and says on stderr what it is.
void write(const std::string& path, const std::string& text, const std::string& what) {
  io::refuse_input(path);
  io::write_file(path, [&](std::ostream& out) { out << text; });
  fmt::print("{}\n", path);
  fmt::print(stderr, "{}: {}\n", path, what);
}

std::string describe_operator(const Options& options) {
  switch (part_of(options)) {
    case compll::WrapperPart::kWrapper:
      return fmt::format("functions on {}'s tensors; -r writes what registers them",
                         options.framework);
    case compll::WrapperPart::kRegistration:
      return fmt::format("registers the functions that -w writes with {}", options.framework);
    case compll::WrapperPart::kBoth:
      break;
  }
  return fmt::format("all of an operator of {} (docs/README.md says how to build and call it)",
                     options.framework);
}

/// "mean_ternary, a quantiser for CPUs and GPUs; parameters: bits (2)"
std::string describe(const compll::Program& program) {
  std::string text = fmt::format("{}, {} for {}", compll::export_name(program),
                                 program.block >= 0               ? "a quantiser of blocks"
                                 : program.quantizer              ? "a quantiser"
                                 : compll::is_sparsifier(program) ? "a sparsifier"
                                                                  : "a program of arrays",
                                 compll::runs_on_gpus(program) ? "CPUs and GPUs" : "CPUs");
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const compll::ProgramParameter& parameter = program.parameters[i];
    text += fmt::format(
        "{} {} ({})", i == 0 ? "; parameters:" : ",", parameter.name,
        parameter.value ? fmt::format("{:g}", *parameter.value) : std::string("to be given"));
  }
  return text;
}

/// What the program is, and how to use it.
void say(const Options& options, const compll::Program& program) {
  fmt::print(stderr, "{}: {}\n", options.file, describe(program));
  if (!program.decoder) {
    fmt::print(stderr, "it has no decoder yet, so that it can only be checked and read\n");
    return;
  }
  fmt::print(stderr,
             "use it where algorithms are named: hipress-profile --algorithm {0}, then "
             "hipress-plan, hipress-sim or hipress-exec --algorithm {0} --profile profile.yaml\n",
             options.file);
}

void write_all(const Options& options, const compll::Compiled& compiled) {
  std::string operators;
  if (wraps(options)) {
    operators =
        compll::wrap(compiled, options.file, stem_of(options), options.framework, part_of(options));
  }
  if (options.body) {
    const bool cuda = body_file(options).ends_with(".cu");
    write(body_file(options), compiled.code,
          fmt::format("the body in {}, which compiles alone with -std=c++20 -I<project root>",
                      cuda ? "CUDA" : "C++"));
  }
  if (wraps(options)) write(operator_file(options), operators, describe_operator(options));
}

int run(const Options& options) {
  check(options);
  if (options.body) io::require_writable(body_file(options));
  if (wraps(options)) io::require_writable(operator_file(options));
  try {
    const compll::Compiled compiled = compll::compile(options.file);
    for (const std::string& note : compiled.notes) fmt::print(stderr, "{}\n", note);
    check(options, compiled.program);
    write_all(options, compiled);
    say(options, compiled.program);
    return 0;
  } catch (const compll::CompileError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return tools::run_tool(
      argc, argv,
      {"hipress-compll",
       "Compiles a compression algorithm written in CompLL; without -b, -w and -r only checks it.\n"
       "-w -r -f FRAMEWORK writes one source that holds all of an operator of that framework.",
       "hipress-compll kernels/algorithms/TerngradEncode.pse -b --target cpp -o build"},
      [&](CLI::App& app) {
        app.add_option("FILE", options.file,
                       "the program; its other half lies beside it "
                       "(XEncode.pse, XDecode.pse) or in it")
            ->required();
        app.add_flag("-b,--body", options.body, "write the operator's body, NAME.cu or NAME.cpp");
        app.add_flag("-w,--wrapper", options.wrapper,
                     "write functions on a framework's tensors, with the body in them: "
                     "NAME_FRAMEWORK.hpp; with -r, all in one NAME_FRAMEWORK.cpp");
        app.add_flag("-r,--register", options.registration,
                     "write what registers these functions: NAME_FRAMEWORK.cpp");
        app.add_option("-f,--framework", options.framework, "whose operator -w and -r write")
            ->check(CLI::IsMember(compll::framework_names()));
        app.add_option("--target", options.target,
                       "what compiles the body: cuda (the default) or cpp (with -w or -r)")
            ->check(CLI::IsMember({"cuda", "cpp"}));
        app.add_option("-o,--output", options.folder, "folder for what is written")
            ->check(CLI::ExistingDirectory)
            ->capture_default_str();
      },
      [&] { return run(options); });
}
