#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace hipress::io {

/// Makes SIGINT, SIGTERM and SIGHUP behave alike; run_tool calls it. The first of them that arrives
/// while an InterruptScope lives only sets its flag. Any other one ends the process: the files that
/// are doomed are removed, the child groups are killed, and the signal's default action makes the
/// exit status name the signal. SIGQUIT and SIGXCPU always end the process in this way. A signal
/// that was ignored when the process started (nohup) stays ignored. May be called repeatedly.
void handle_interrupts();

/// Removes all doomed files and kills all child groups, for a process that ends without unwinding
/// its stack. Async-signal-safe. Does nothing in a forked child of the process that called
/// handle_interrupts.
void abandon_work();

/// For work that an interrupt has ended early, in a scope below, without a result: ends the process
/// as the signal would have done. Only after InterruptScope::interrupted().
[[noreturn]] void end_interrupted();

/// While it lives, the first interrupt asks the work to end early with its best result. At most one
/// lives at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// Whether an interrupt has arrived in the scope that lives, or in the last one that did.
  static bool interrupted() { return flag().load(std::memory_order_relaxed); }
  /// The same, for searches that take a flag.
  static const std::atomic<bool>& flag();
};

/// A file that is removed at the end of the scope, or when a signal ends the process, unless it is
/// kept. It need not exist yet: create the object before the file, so that no moment is left out.
class DoomedFile {
 public:
  explicit DoomedFile(std::string path);
  ~DoomedFile();
  DoomedFile(const DoomedFile&) = delete;
  DoomedFile& operator=(const DoomedFile&) = delete;

  /// The file stays from now on: it is complete, or has been renamed.
  void keep();
  const std::string& path() const { return *path_; }

 private:
  void withdraw();

  std::unique_ptr<const std::string> path_;
  std::atomic<const char*>* slot_;  ///< null: the table was full, or the file is kept
  bool kept_ = false;
  bool name_in_use_ = false;  ///< by a signal handler on another thread
};

/// A process group of children, led by `leader`, that is killed when a signal ends this process.
/// Start the child in a group of its own (POSIX_SPAWN_SETPGROUP), and destroy this object when the
/// group has ended.
class ChildGroup {
 public:
  explicit ChildGroup(pid_t leader);
  ~ChildGroup();
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;

 private:
  std::atomic<pid_t>* slot_;  ///< null: the table was full
};

}  // namespace hipress::io
