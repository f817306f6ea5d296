#pragma once

#include <functional>
#include <string>

/// Frame of the command-line tools: help, errors, exit statuses, log. A main() parses, calls,
/// prints:
///
///     int main(int argc, char** argv) {
///       std::string name;
///       const hipress::tools::ToolInfo info = {.name = "hipress-greet",
///                                              .purpose = "Greets somebody.",
///                                              .example = "hipress-greet --name Ada"};
///       const auto declare = [&](CLI::App& app) { app.add_option("--name", name, "Their name"); };
///       return hipress::tools::run_tool(argc, argv, info, declare, [&] {
///         std::cout << "Hello, " << name << '\n';
///         return 0;
///       });
///     }
namespace CLI {
class App;
}

namespace hipress::tools {

/// Description of a tool for --help and for messages.
struct ToolInfo {
  std::string name;     ///< "hipress-plan"
  std::string purpose;  ///< one sentence
  std::string example;  ///< a command line that works as printed, in any folder
  /// True if the tool needs arguments. Called without any, it prints its usage and exits with 2.
  bool needs_arguments = false;
};

/// Runs a tool: `declare` adds options to the app, `run` does the work and returns the exit status.
///
/// - --help opens with the example; groups of options follow the order of requests/headings.hpp,
///   others come last. --version prints version, git hash, CUDA and NCCL.
/// - Errors are printed on stderr as `hipress-plan: message`, with the remedy for exhausted
///   resources (describe() in io/error.hpp). Unknown options propose known ones.
/// - Exit statuses: 2 for CLI11's errors, InputError and std::invalid_argument (bad names and
///   values in libraries that read no files); 3 for Unmet; 1 for RunError, for other exceptions,
///   and for results that cannot be written to stdout. An uncaught exception, such as on another
///   thread, also exits with 1 and a message.
/// - Interrupts are handled (io/interrupts.hpp). The log goes to stderr, without colour under
///   NO_COLOR or if stderr is not a terminal.
int run_tool(int argc, char** argv, const ToolInfo& info,
             const std::function<void(CLI::App&)>& declare, const std::function<int()>& run);

/// Logs a line on stderr: "hipress-plan: info: …", "hipress-plan: warning: …".
void inform(const std::string& sentence);
void warn(const std::string& sentence);

}  // namespace hipress::tools
