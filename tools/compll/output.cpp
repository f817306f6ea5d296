#include "tools/compll/output.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <ostream>
#include <stdexcept>

#include "io/file.hpp"
#include "kernels/compll/emit.hpp"
#include "kernels/compll/wrappers.hpp"

namespace hipress::compll {
namespace {

bool wraps(const Options& options) { return options.wrapper || options.registration; }

WrapperPart part_of(const Options& options) {
  if (!options.registration) return WrapperPart::kWrapper;
  return options.wrapper ? WrapperPart::kBoth : WrapperPart::kRegistration;
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
  const std::string name = wrapper_file(stem_of(options), options.framework, part_of(options));
  return (std::filesystem::path(options.folder) / name).string();
}

/// Writes a file. Unless `quiet`, prints its name on stdout and its description on stderr.
void write(const std::string& path, const std::string& text, const std::string& what, bool quiet) {
  io::refuse_input(path);
  io::write_file(path, [&](std::ostream& out) { out << text; });
  if (quiet) return;
  fmt::print("{}\n", path);
  fmt::print(stderr, "{}: {}\n", path, what);
}

std::string describe_operator(const Options& options) {
  switch (part_of(options)) {
    case WrapperPart::kWrapper:
      return fmt::format("functions on {}'s tensors; -r writes their registration",
                         options.framework);
    case WrapperPart::kRegistration:
      return fmt::format("registration of the functions that -w writes with {}", options.framework);
    case WrapperPart::kBoth:
      break;
  }
  return fmt::format("the whole operator of {} (docs/README.md describes how to build and call it)",
                     options.framework);
}

/// Description of a program: "mean_ternary, a quantiser for CPUs and GPUs; parameters: bits (2)".
std::string describe(const Program& program) {
  std::string text = fmt::format("{}, {} for {}", export_name(program),
                                 program.block >= 0       ? "a quantiser of blocks"
                                 : program.quantizer      ? "a quantiser"
                                 : is_sparsifier(program) ? "a sparsifier"
                                                          : "a program of arrays",
                                 runs_on_gpus(program) ? "CPUs and GPUs" : "CPUs");
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const ProgramParameter& parameter = program.parameters[i];
    text += fmt::format(
        "{} {} ({})", i == 0 ? "; parameters:" : ",", parameter.name,
        parameter.value ? fmt::format("{:g}", *parameter.value) : std::string("to be given"));
  }
  return text;
}

}  // namespace

void check(const Options& options) {
  if (wraps(options) && options.framework.empty()) {
    throw std::invalid_argument(fmt::format("-w and -r need a framework: give -f with one of {}",
                                            fmt::join(framework_names(), ", ")));
  }
  if (!wraps(options) && !options.framework.empty()) {
    throw std::invalid_argument(
        "-f names the framework of -w (wrapper) and -r (registration); give one of them");
  }
  if (wraps(options) && options.target == "cuda") {
    throw std::invalid_argument(
        "-w and -r write operators for CPUs: leave --target cuda out, and write the CUDA body with "
        "a command of its own");
  }
  if (options.body) io::require_writable(body_file(options));
  if (wraps(options)) io::require_writable(operator_file(options));
}

void check(const Options& options, const Program& program) {
  const bool cpp = wraps(options) || options.target == "cpp";
  if (options.body && !cpp && !runs_on_gpus(program)) {
    throw std::invalid_argument(fmt::format(
        "{}: the program runs on CPUs only: it is neither a quantiser nor a sparsifier, as "
        "kernels/compll/language.md describes them; make it one, or give --target cpp",
        options.file));
  }
}

void write_all(const Options& options, const Compiled& compiled) {
  std::string operators;
  if (wraps(options)) {
    operators = wrap(compiled, options.file, stem_of(options), options.framework, part_of(options));
  }
  if (options.body) {
    const bool cuda = body_file(options).ends_with(".cu");
    write(body_file(options), compiled.code,
          fmt::format("the body in {}, which compiles alone with -std=c++20 -I<project root>",
                      cuda ? "CUDA" : "C++"),
          options.quiet);
  }
  if (wraps(options)) {
    write(operator_file(options), operators, describe_operator(options), options.quiet);
  }
}

void say(const Options& options, const Compiled& compiled) {
  if (options.quiet) return;
  for (const std::string& note : compiled.notes) fmt::print(stderr, "{}\n", note);
  const Program& program = compiled.program;
  fmt::print(stderr, "{}: {}\n", options.file, describe(program));
  if (!program.decoder) {
    fmt::print(stderr, "it has no decoder yet, so that it can only be checked and read\n");
    return;
  }
  fmt::print(stderr,
             "use its name as an algorithm: hipress-profile --algorithm {0}, then hipress-plan, "
             "hipress-sim or hipress-exec --algorithm {0} --profile profile.yaml\n",
             options.file);
}

}  // namespace hipress::compll
