#include "io/interrupts.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

// Handlers may interrupt any thread at any instruction. They use only lock-free atomics, tables of
// fixed size and async-signal-safe functions.

namespace hipress::io {
namespace {

constexpr std::array kInterrupts = {SIGINT, SIGTERM, SIGHUP};
constexpr std::array kOthers = {SIGQUIT, SIGXCPU};
constexpr std::size_t kMaxFiles = 256;  // files beyond these are removed only at the end of their
                                        // scope
constexpr std::size_t kMaxGroups = 256;

static_assert(std::atomic<const char*>::is_always_lock_free);
static_assert(std::atomic<pid_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

std::array<std::atomic<const char*>, kMaxFiles> doomed{};
std::array<std::atomic<pid_t>, kMaxGroups> groups{};
std::atomic<bool> scope_lives = false;
std::atomic<bool> was_interrupted = false;
std::atomic<int> interrupting_signal = 0;
std::atomic<pid_t> owner = 0;  ///< process that owns these files and children

/// Puts `value` into an empty slot of a table. Returns the slot; null if the table is full.
template <typename Table, typename Value>
auto put(Table& table, Value value) -> typename Table::value_type* {
  for (auto& place : table) {
    Value empty{};
    if (place.compare_exchange_strong(empty, value)) return &place;
  }
  return nullptr;
}

void kill_groups(int signal) {
  for (const std::atomic<pid_t>& place : groups) {
    if (const pid_t group = place.load(); group > 0) ::kill(-group, signal);
  }
}

bool any_groups() {
  for (const std::atomic<pid_t>& place : groups) {
    if (place.load() > 0) return true;
  }
  return false;
}

/// Ends the process as if the signal had no handler.
[[noreturn]] void die_of(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);  // PID 1 of a container does not die of signals that it sends itself
}

void on_interrupt(int signal) {
  const int error = errno;
  if (scope_lives.load() && !was_interrupted.exchange(true)) {
    interrupting_signal = signal;
    errno = error;
    return;
  }
  abandon_work();
  die_of(signal);
}

void on_fatal_signal(int signal) {
  abandon_work();
  die_of(signal);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction before {};
  if (::sigaction(signal, nullptr, &before) != 0) return;
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  // Only one handler runs at a time; other signals wait until it returns.
  sigemptyset(&action.sa_mask);
  for (const int other : kInterrupts) sigaddset(&action.sa_mask, other);
  for (const int other : kOthers) sigaddset(&action.sa_mask, other);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void handle_interrupts() {
  owner = ::getpid();
  for (const int signal : kInterrupts) handle(signal, on_interrupt);
  for (const int signal : kOthers) handle(signal, on_fatal_signal);
}

void abandon_work() {
  if (owner.load() != ::getpid()) return;
  for (std::atomic<const char*>& place : doomed) {
    // Takes the name out of the table, so a destructor on another thread does not free it.
    if (const char* path = place.exchange(nullptr)) ::unlink(path);
  }
  if (!any_groups()) return;
  // SIGTERM lets compilers remove their temporary files. Then all child groups are killed.
  constexpr int kGraceMs = 50;
  kill_groups(SIGTERM);
  kill_groups(SIGCONT);
  ::poll(nullptr, 0, kGraceMs);
  kill_groups(SIGKILL);
}

void end_interrupted() {
  abandon_work();
  die_of(interrupting_signal.load());
}

InterruptScope::InterruptScope() {
  was_interrupted = false;
  scope_lives = true;
}

InterruptScope::~InterruptScope() { scope_lives = false; }

const std::atomic<bool>& InterruptScope::flag() { return was_interrupted; }

DoomedFile::DoomedFile(std::string path)
    : path_(std::make_unique<const std::string>(std::move(path))),
      slot_(put(doomed, path_->c_str())) {}

/// Removes the file from the table.
void DoomedFile::withdraw() {
  if (!slot_) return;
  const char* mine = path_->c_str();
  name_in_use_ = !std::exchange(slot_, nullptr)->compare_exchange_strong(mine, nullptr);
}

void DoomedFile::keep() {
  kept_ = true;
  withdraw();
}

DoomedFile::~DoomedFile() {
  if (!kept_) ::unlink(path_->c_str());
  withdraw();
  // A handler that has taken the name may still read it, so it is leaked: the process is ending.
  if (name_in_use_) (void)path_.release();
}

ChildGroup::ChildGroup(pid_t leader) : slot_(put(groups, leader)) {}

ChildGroup::~ChildGroup() {
  if (slot_) slot_->store(0);
}

}  // namespace hipress::io
