#pragma once

#include <string>
#include <vector>

namespace hipress::io {

/// Command for run_child().
struct ChildCommand {
  std::vector<std::string> words;        ///< program, searched on the PATH, and its arguments
  std::string input;                     ///< content of its standard input
  std::vector<std::string> environment;  ///< "NAME=value", added to this process's environment
  double timeout_s = 0;                  ///< time limit, after which the command is killed
  std::string folder = {};               ///< working directory; empty: this process's
};

/// Outcome of a command.
struct ChildResult {
  /// Value of errno if the command could not be started; the other members are then meaningless.
  int start_error = 0;
  bool timed_out = false;
  int status = 0;      ///< exit status; 128 + N if signal N ended it
  std::string output;  ///< first 64 KiB of standard output and standard error
};

/// Runs a command and waits for it: without a shell, in a process group of its own, with umask 077.
/// The group is killed if the time limit passes, or if this process dies first (even by SIGKILL).
/// Background processes that outlive the command are neither waited for nor killed. Throws RunError
/// with the remedy if processes, descriptors or memory run out.
ChildResult run_child(const ChildCommand& command);

}  // namespace hipress::io
