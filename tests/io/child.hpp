#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>

#include "io/interrupts.hpp"

namespace hipress::tests {

/// A forked process that handles interrupts and runs `work`.
class Child {
 public:
  using Ready = std::function<void()>;

  /// `work` calls its argument when it is ready for signals, and returns the exit status.
  explicit Child(const std::function<int(const Ready&)>& work, bool ignores_hangups = false) {
    REQUIRE(::pipe(ends_) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) {
      ::close(ends_[1]);
      return;
    }
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_DFL);
    if (ignores_hangups) ::signal(SIGHUP, SIG_IGN);
    ::alarm(60);
    io::handle_interrupts();
    ::_exit(work([this] { (void)!::write(ends_[1], "r", 1); }));
  }
  ~Child() {
    ::close(ends_[0]);
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void await() {
    char byte = 0;
    REQUIRE(::read(ends_[0], &byte, 1) == 1);
  }
  void send(int number) { ::kill(pid_, number); }
  /// Waits for the end. Returns the exit status, or −N if signal N ended the process.
  int end() {
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  int ends_[2] = {};
  pid_t pid_ = -1;
};

inline int wait_for_end() {
  while (true) ::pause();
}

}  // namespace hipress::tests
