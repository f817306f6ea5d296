#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "transport/endpoint.hpp"

namespace gloo::rendezvous {
class Store;
}

namespace hipress::transport {

/// Names the job and its plan in every record and key; other jobs have other hashes.
std::uint64_t job_hash(const JobOptions& options);

/// The object of this process that goes by `name`, made when the first asks for it and gone with
/// the last user: how ranks that are threads of one process find each other.
template <typename T>
std::shared_ptr<T> shared_by_name(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<T>> objects;
  const std::lock_guard lock(mutex);
  std::erase_if(objects, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<T> object = objects[name].lock();
  if (!object) {
    object = std::make_shared<T>();
    objects[name] = object;
  }
  return object;
}

/// Where the ranks of a job find each other: a gloo store, in which the keys of one job share a
/// prefix. Each rank leaves a card that says what it takes part in. In a shared folder the card and
/// all else that a rank published are files, removed once all ranks are connected; a job that died
/// before leaves its files behind, which a later job with the same text meets as an error, and one
/// with another text not at all. In Redis keys stay: there every job needs its own text.
class Meeting {
 public:
  /// Opens the store and leaves this rank's card. io::InputError if there is no such store,
  /// `options` make no sense, or there is a rank of this number already. io::RunError, here and
  /// below, when the store fails, in its own words, or does not answer until the deadline.
  explicit Meeting(const JobOptions& options);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Waits for the cards of all ranks and compares them with this rank's. io::InputError if they
  /// do not fit, or a rank listens on loopback, where ranks on other hosts do not reach it.
  void meet();
  /// Tells `text` under `key` to all ranks. io::InputError if a rank of this number has done so.
  void publish(const std::string& key, const std::vector<char>& text);
  /// Waits for what `rank` publishes under `key`; PeerError naming it if the deadline passes.
  std::vector<char> fetch(int rank, const std::string& key);
  /// When this rank gives up waiting.
  Clock::time_point deadline() const { return deadline_; }
  /// Removes this rank's files. To be called when all ranks have read them.
  void clean_up() noexcept;

 private:
  struct Stores;

  std::string key_of(int rank, const std::string& key) const;
  void leave_card();
  bool has(const std::string& key) const;
  void compare(int rank, const nlohmann::json& card) const;

  JobOptions options_;
  Clock::time_point deadline_;
  std::unique_ptr<Stores> stores_;
};

}  // namespace hipress::transport
