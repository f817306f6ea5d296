#include "io/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include "io/descriptors.hpp"
#include "io/error.hpp"
#include "io/interrupts.hpp"
#include "io/memory_file.hpp"

extern char** environ;

// This process forks a supervisor, and the supervisor forks the command. Both are in a process
// group that the supervisor leads. If this process dies, the kernel signals the supervisor
// (PR_SET_PDEATHSIG, which does not reach grandchildren), and the supervisor kills the group.
//
// Other threads may hold locks during the fork. The children therefore call only async-signal-safe
// functions, and all memory is allocated before it.

namespace hipress::io {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput = 64 << 10;
constexpr int kGraceMs = 500;  ///< time between SIGTERM and SIGKILL, for compilers to clean up

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw RunError(fmt::format("no pipe can be made: {}; allow more open files (ulimit -n)",
                                 std::strerror(errno)));
    }
    reader = Descriptor(ends[0]);
    writer = Descriptor(ends[1]);
  }
  Descriptor reader, writer;
};

/// Arguments of the children, allocated before the fork.
struct Prepared {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const char* folder;  ///< working directory; null: this process's
  int input, output;
  int ended;  ///< pipe for the errno of a failed start; open until both children end
};

void end_group(int /*signal*/) {
  ::signal(SIGTERM, SIG_IGN);  // this process is in the group, too
  ::kill(0, SIGTERM);
  ::poll(nullptr, 0, kGraceMs);
  ::kill(0, SIGKILL);
}

void report(int ended, int error) {
  [[maybe_unused]] const ssize_t written = ::write(ended, &error, sizeof error);
}

void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_command(const Prepared& prepared) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  unblock_signals();
  ::umask(077);
  const bool is_there = prepared.folder == nullptr || ::chdir(prepared.folder) == 0;
  if (is_there && ::dup2(prepared.input, 0) >= 0 && ::dup2(prepared.output, 1) >= 0 &&
      ::dup2(prepared.output, 2) >= 0) {
    ::execvpe(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
  }
  report(prepared.ended, errno);
  ::_exit(127);
}

[[noreturn]] void supervise(const Prepared& prepared, pid_t parent) {
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, end_group);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // the parent has died already
  const pid_t command = ::fork();
  if (command == 0) become_command(prepared);
  if (command < 0) {
    report(prepared.ended, errno);
    ::_exit(127);
  }
  ::close(prepared.output);
  unblock_signals();
  int status = 0;
  while (::waitpid(command, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

[[noreturn]] void complain_of_room(const std::string& name, int error) {
  throw RunError(fmt::format(
      "{} cannot be started: {}; allow more processes and open files (ulimit -u, ulimit -n), or "
      "free memory",
      quote(name), std::strerror(error)));
}

/// Blocks all signals of this thread while it exists.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// A started process group. The destructor kills it unless wait() was called.
class Group {
 public:
  Group(const Prepared& prepared, const std::string& name) {
    // In the supervisor, no handler of this process may run before it has installed its own.
    const SignalsBlocked blocked;
    const pid_t self = ::getpid();
    leader_ = ::fork();
    if (leader_ == 0) supervise(prepared, self);
    if (leader_ < 0) complain_of_room(name, errno);
    ::setpgid(leader_, leader_);  // parent and child both call it, since either may come first
    killed_with_us_.emplace(leader_);
  }
  ~Group() {
    if (leader_ > 0) {
      send(SIGKILL);
      wait();
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void send(int signal) const { ::kill(-leader_, signal); }

  /// Waits for the leader. Returns its exit status as a shell does.
  int wait() {
    int status = 0;
    while (::waitpid(leader_, &status, 0) < 0 && errno == EINTR) {
    }
    leader_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t leader_ = -1;
  std::optional<ChildGroup> killed_with_us_;
};

/// Reads available bytes, and appends them to `output`, which keeps the first kMaxOutput bytes.
/// False at the end of the pipe.
bool drain(int pipe, std::string& output) {
  std::array<char, 4096> block;
  const ssize_t got = ::read(pipe, block.data(), block.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  const std::size_t room = kMaxOutput - output.size();
  output.append(block.data(), std::min(room, static_cast<std::size_t>(got)));
  return got > 0;
}

/// Collects output until the supervisor ends; false if it is still running at the deadline.
bool wait_for_end(int ended, int output, Clock::time_point deadline, ChildResult& result) {
  for (bool open = true;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> events{pollfd{ended, POLLIN, 0}, pollfd{open ? output : -1, POLLIN, 0}};
    constexpr std::int64_t kLongestWaitMs = 60'000;
    ::poll(events.data(), events.size(), static_cast<int>(std::min(left, kLongestWaitMs)));
    if (events[1].revents != 0) open = drain(output, result.output);
    if (events[0].revents == 0) continue;
    const ssize_t got = ::read(ended, &result.start_error, sizeof result.start_error);
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
  }
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// This process's environment; variables in `added` replace those of the same name.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& own) {
      return std::string_view(own).starts_with(name);
    });
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

}  // namespace

ChildResult run_child(const ChildCommand& command) {
  std::vector<std::string> words = command.words;
  std::vector<std::string> environment = environment_with(command.environment);
  const MemoryFile input(command.input);
  Pipe output, ended;
  ChildResult result;
  result.output.reserve(kMaxOutput);
  Group group({.arguments = pointers_to(words),
               .environment = pointers_to(environment),
               .folder = command.folder.empty() ? nullptr : command.folder.c_str(),
               .input = input.descriptor(),
               .output = output.writer.number(),
               .ended = ended.writer.number()},
              words.at(0));
  output.writer.close();
  ended.writer.close();
  const auto after = [](double seconds) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  if (!wait_for_end(ended.reader.number(), output.reader.number(), after(command.timeout_s),
                    result)) {
    result.timed_out = true;
    group.send(SIGTERM);
    wait_for_end(ended.reader.number(), output.reader.number(), after(2 * kGraceMs / 1e3), result);
    group.send(SIGKILL);
  }
  ::fcntl(output.reader.number(), F_SETFL,
          O_NONBLOCK);  // a server that the command started may hold it open
  while (result.output.size() < kMaxOutput) {
    const std::size_t before = result.output.size();
    if (!drain(output.reader.number(), result.output) || result.output.size() == before) break;
  }
  result.status = group.wait();
  const int error = result.start_error;
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE) {
    complain_of_room(words.at(0), error);
  }
  return result;
}

}  // namespace hipress::io
