#pragma once

#include <string>
#include <vector>

namespace hipress::io {

/// A command that is run and waited for.
struct ChildCommand {
  std::vector<std::string> words;        ///< the program, looked for on the PATH, and its arguments
  std::string input;                     ///< what it reads from standard input
  std::vector<std::string> environment;  ///< "NAME=value", added to ours
  double timeout_s = 0;                  ///< after which it is ended
  std::string folder = {};               ///< that it works in; empty: ours
};

/// How it went.
struct ChildResult {
  int start_error = 0;  ///< errno if there is no such program; the rest then means nothing
  bool timed_out = false;
  int status = 0;      ///< the exit status; 128 + N if signal N ended it
  std::string output;  ///< the first 64 KiB of standard output and standard error
};

/// Runs a command without a shell, in a process group of its own, with umask 077. The group ends
/// when its time is over, when a signal ends this process (SIGKILL included), and when the command
/// ends: no orphan goes on working. RunError with the remedy if there are no processes, descriptors
/// or memory for the command.
ChildResult run_child(const ChildCommand& command);

}  // namespace hipress::io
