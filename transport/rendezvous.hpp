#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "transport/endpoint.hpp"
#include "transport/seal.hpp"
#include "transport/store.hpp"

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

/// Where the ranks of a job find each other: a store, in which the entries of one job share a
/// prefix. Each rank leaves a card that says what it takes part in. In a shared folder, cards and
/// other entries are files, removed once all ranks are connected. The files of a job that died
/// before that stay: a later job with the same text fails because of them, one with another text
/// does not see them. In a Redis keys stay: there every job needs its own text.
///
/// Anybody who can write to the store could leave a card. With JobOptions::secret every item
/// carries a proof that a rank of the job wrote it; an error names any other item.
class Rendezvous {
 public:
  /// Opens the store and leaves this rank's card. io::InputError if there is no such store, if
  /// `options` make no sense, or if there is a rank of this number already. io::RunError, here and
  /// below, if the store fails (with the store's own message) or does not answer until the
  /// deadline; std::system_error if this process may open no more files.
  explicit Rendezvous(const JobOptions& options);
  /// The same, with a card that says why this rank takes no part; empty: it does. meet() of the
  /// others then throws io::InputError with that reason.
  Rendezvous(const JobOptions& options, const std::string& refusal);
  ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Waits for the cards of all ranks and compares them with this rank's. io::InputError if they
  /// do not fit, or a rank listens on loopback, where ranks on other hosts do not reach it.
  void meet();
  /// After meet(): 32 bytes, the same on all ranks, that nobody else knows who has neither
  /// JobOptions::secret nor, without one, may read the store.
  const std::vector<std::byte>& secret() const { return secret_; }
  /// Tells `text` under `key` to all ranks. io::InputError if a rank of this number has done so.
  void publish(const std::string& key, const std::vector<char>& text);
  /// Waits for what `rank` publishes under `key`; PeerError naming it if the deadline passes, and
  /// io::RunError naming the item if it is not what a rank of this job has written.
  std::vector<char> fetch(int rank, const std::string& key);
  /// When this rank gives up waiting.
  Clock::time_point deadline() const { return deadline_; }
  /// After a refusal, in a store whose entries would stay in the way of the next job of this name:
  /// waits until the ranks that come before the deadline have read it, and removes it.
  void be_read();
  /// Removes this rank's files. To be called when all ranks have read them.
  void clean_up() noexcept;

 private:
  std::string name_of(int rank, const std::string& key) const;
  void leave_card(const std::string& refusal);
  void publish(const std::string& key, std::string_view text, Keep keep);
  void agree_on_secret();
  void compare(int rank, const nlohmann::json& card) const;

  JobOptions options_;
  std::string place_;  ///< the rendezvous, without its password
  Clock::time_point deadline_;
  std::string nonce_;  ///< tells this rank from another one with the same number
  std::vector<std::byte> secret_;
  Seal seal_;
  std::shared_ptr<Store> store_;
};

}  // namespace hipress::transport
