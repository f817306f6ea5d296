#include "transport/store.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

namespace hipress::transport {
namespace {

/// Pause between two polls for an entry. With a shorter one, ranks meet sooner; a longer one puts
/// less load on the store.
constexpr std::chrono::milliseconds kPause{10};

}  // namespace

void throw_if_exhausted(int error) {
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    throw std::system_error(error, std::generic_category());
  }
}

std::optional<std::string> Store::wait_for(const std::string& name, Clock::time_point deadline) {
  for (;;) {
    if (std::optional<std::string> content = find(name)) return content;
    const auto now = Clock::now();
    if (now >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::min<Clock::duration>(kPause, deadline - now));
  }
}

bool LocalStore::add(const std::string& name, std::string_view content, Keep /*keep*/) {
  const std::lock_guard lock(mutex_);
  const bool added = entries_.try_emplace(name, content).second;
  added_.notify_all();
  return added;
}

std::optional<std::string> LocalStore::wait_for(const std::string& name,
                                                Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (!added_.wait_until(lock, deadline, [&] { return entries_.contains(name); })) {
    return std::nullopt;
  }
  return entries_.at(name);
}

std::optional<std::string> LocalStore::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace hipress::transport
