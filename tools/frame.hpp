#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace hipress::tools {

/// What makes a command-line tool of ours: its name, one real example that opens --help, and what
/// it does.
struct ToolInfo {
  std::string name;     ///< "hipress-plan"
  std::string purpose;  ///< one sentence
  std::string example;  ///< a command line that works as printed
};

/// The frame of every `main`: `declare` adds options to the app, `run` does the work and returns
/// the exit status. Handles --help (opens with the example) and --version (version, git hash, CUDA
/// and NCCL built with), maps CLI11's errors, InputError and std::invalid_argument (how libraries
/// that read no files refuse a name or value) to 2, RunError and any other exception to 1, Unmet to
/// 3, and prints them on stderr as `hipress-plan: message`, with the remedy where memory, threads
/// or descriptors ran out (describe in error.hpp). An exception that nothing catches, such as one
/// on a thread, also ends the process with 1 and a sentence. Results that cannot be written to
/// stdout are a failed run. Interrupts are handled (interrupts.hpp). Logging (spdlog) goes to
/// stderr, without colour under NO_COLOR or when stderr is no terminal.
int run_tool(int argc, char** argv, const ToolInfo& info,
             const std::function<void(CLI::App&)>& declare, const std::function<int()>& run);

/// For ->check() of an option that takes a count or a seed: a whole decimal number from `least` to
/// `most`, both of which its variable must hold. Without it CLI11 takes -1 and numbers of any
/// length for unsigned variables, and 010 for 8.
CLI::Validator count_from(std::uint64_t least, std::uint64_t most = UINT64_MAX);

/// For ->check() of an option that takes the name of a file: it is not empty.
CLI::Validator file_name();

/// For ->check() of an option that takes a real number: it must be finite, and from `least` to
/// `most`. CLI11's own ranges take nan for a number within them.
CLI::Validator number_from(double least, double most);

}  // namespace hipress::tools
