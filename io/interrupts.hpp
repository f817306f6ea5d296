#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace hipress::io {

/// Installs the handlers of signals; run_tool() calls it. The first SIGINT, SIGTERM or SIGHUP in an
/// InterruptScope only sets its flag. All later ones, those outside of a scope, and every SIGQUIT
/// and SIGXCPU end the process: doomed files are removed, child groups are killed, and the signal's
/// default action makes the exit status name the signal. Signals that were ignored at the start of
/// the process (nohup) stay ignored. Idempotent.
void handle_interrupts();

/// Removes all doomed files and kills all child groups, for a process that ends without unwinding
/// its stack. Async-signal-safe. Does nothing in forked children of the process that called
/// handle_interrupts().
void abandon_work();

/// Ends the process as the interrupting signal would have done: for interrupted work without a
/// result. Requires InterruptScope::interrupted().
[[noreturn]] void end_interrupted();

/// Scope in which the first interrupt asks work to stop with its best result. Scopes cannot be
/// nested.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// True if an interrupt has arrived in the current scope, or else in the last one.
  static bool interrupted() { return flag().load(std::memory_order_relaxed); }
  /// Flag that interrupted() reads, for searches that take a flag.
  static const std::atomic<bool>& flag();
};

/// A file that is removed at the end of the scope, or if a signal ends the process, unless keep()
/// was called. Construct the object before the file is created, so the file is never unguarded.
class DoomedFile {
 public:
  explicit DoomedFile(std::string path);
  ~DoomedFile();
  DoomedFile(const DoomedFile&) = delete;
  DoomedFile& operator=(const DoomedFile&) = delete;

  /// Keeps the file from now on: it is complete, or has been renamed.
  void keep();
  const std::string& path() const { return *path_; }

 private:
  void withdraw();

  std::unique_ptr<const std::string> path_;
  std::atomic<const char*>* slot_;  ///< null: the table is full, or the file is kept
  bool kept_ = false;
  bool name_in_use_ = false;  ///< a signal handler on another thread may read the name
};

/// A process group of children, which is killed if a signal ends this process. Start the child in a
/// group of its own (POSIX_SPAWN_SETPGROUP), and destroy this object when the group has ended.
class ChildGroup {
 public:
  explicit ChildGroup(pid_t leader);
  ~ChildGroup();
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;

 private:
  std::atomic<pid_t>* slot_;  ///< null: the table is full
};

}  // namespace hipress::io
