#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace hipress::io {

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
/// 3, and prints them on stderr as `hipress-plan: message`. Results that cannot be written to
/// stdout are a failed run. Interrupts are handled (interrupts.hpp). Logging (spdlog) goes to
/// stderr, without colour under NO_COLOR or when stderr is no terminal.
int run_tool(int argc, char** argv, const ToolInfo& info,
             const std::function<void(CLI::App&)>& declare, const std::function<int()>& run);

/// For ->check() of an option that takes a real number: it must be finite, and from `least` to
/// `most`. CLI11's own ranges take nan for a number within them.
CLI::Validator number_from(double least, double most);

/// "0.1.0": ranks of one job must be of one release.
std::string release();

/// "0.1.0 (git 1a2b3c4, CUDA 13.0, NCCL 2.27.7)": for --version and for provenance in files.
std::string version();

}  // namespace hipress::io
