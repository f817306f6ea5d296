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

/// Hash of the job's id and plan, which identifies the job in every record and key.
std::uint64_t job_hash(const JobOptions& options);

/// Process-wide object called `name`, created on first use and destroyed with its last user. Ranks
/// that are threads of one process find each other through it.
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

/// Meeting point of a job's ranks: a store, in which the entries of one job share a prefix. Each
/// rank leaves a card with its parameters. In a shared folder, cards and other entries are files,
/// removed once all ranks are connected. Files of a job that died before that remain: a later job
/// with the same id fails because of them; a job with a different id ignores them. Keys in a Redis
/// remain, so every job there needs its own id.
///
/// Anybody who can write to the store could leave a card. With JobOptions::secret every item
/// carries a proof that a rank of the job wrote it; an error names an item without one.
class Rendezvous {
 public:
  /// Opens the store and leaves this rank's card. Throws io::InputError if there is no such store,
  /// if `options` are invalid, or if this rank number is taken. This and the functions below throw
  /// io::RunError if the store fails (with the store's own message) or does not answer before the
  /// deadline, and std::system_error if this process may open no more files.
  explicit Rendezvous(const JobOptions& options);
  /// Leaves a card. `refusal` is the reason why this rank does not take part; empty: it takes part.
  /// If it does not, the other ranks' meet() throws io::InputError with the reason.
  Rendezvous(const JobOptions& options, const std::string& refusal);
  ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Waits for the cards of all ranks and compares them with this rank's. Throws io::InputError if
  /// they differ, or if a rank listens on loopback while others are on other hosts.
  void meet();
  /// Shared 32-byte secret, known after meet(). It is derived from JobOptions::secret if that is
  /// set. Otherwise rank 0 generates and publishes it, so the store's readers know it.
  const std::vector<std::byte>& secret() const { return secret_; }
  /// Publishes `text` under `key` to all ranks. Throws io::InputError if a rank of this number has
  /// done so already.
  void publish(const std::string& key, const std::vector<char>& text);
  /// Waits for the text that `rank` publishes under `key`. Throws PeerError naming the rank if the
  /// deadline passes, and io::RunError naming the item if no rank of this job wrote it.
  std::vector<char> fetch(int rank, const std::string& key);
  /// Time at which this rank gives up waiting.
  Clock::time_point deadline() const { return deadline_; }
  /// Call it after leaving a refusal: waits until the ranks that come before the deadline have read
  /// it, then removes it. Does nothing if the store does not remove entries.
  void be_read();
  /// Removes this rank's files. Call it when all ranks have read them.
  void clean_up() noexcept;

 private:
  std::string name_of(int rank, const std::string& key) const;
  void leave_card(const std::string& refusal);
  void publish(const std::string& key, std::string_view text, Keep keep);
  void agree_on_secret();
  void compare(int rank, const nlohmann::json& card) const;

  JobOptions options_;
  std::string place_;  ///< the rendezvous without its password
  Clock::time_point deadline_;
  std::string nonce_;  ///< distinguishes this rank from another one with the same number
  std::vector<std::byte> secret_;
  Seal seal_;
  std::shared_ptr<Store> store_;
};

}  // namespace hipress::transport
