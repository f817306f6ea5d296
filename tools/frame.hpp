#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace hipress::tools {

/// What makes a command-line tool of ours: its name, one real example that opens --help, and what
/// it does.
struct ToolInfo {
  std::string name;     ///< "hipress-plan"
  std::string purpose;  ///< one sentence
  std::string example;  ///< a command line that works as printed, in any folder
  /// Without any argument the tool has nothing to do: it then prints its usage, as a wrong request.
  bool needs_arguments = false;
};

/// The frame of every `main`: `declare` adds options to the app, `run` does the work and returns
/// the exit status. Handles --help (opens with the example; groups of options stand in the order of
/// requests/headings.hpp, others behind them) and --version (version, git hash, CUDA
/// and NCCL built with), proposes known options for unknown ones, maps CLI11's errors, InputError
/// and std::invalid_argument (how libraries that read no files refuse a name or value) to 2,
/// RunError and any other exception to 1, Unmet to 3, and prints them on stderr as `hipress-plan:
/// message`, with the remedy where memory, threads or descriptors ran out (describe in error.hpp).
/// An exception that nothing catches, such as one on a thread, also ends the process with 1 and a
/// sentence. Results that cannot be written to stdout are a failed run. Interrupts are handled
/// (interrupts.hpp). The log goes to stderr, without colour under NO_COLOR or when stderr is no
/// terminal.
int run_tool(int argc, char** argv, const ToolInfo& info,
             const std::function<void(CLI::App&)>& declare, const std::function<int()>& run);

/// A line of the log on stderr: "hipress-plan: info: …", "hipress-plan: warning: …".
void inform(const std::string& sentence);
void warn(const std::string& sentence);

}  // namespace hipress::tools
