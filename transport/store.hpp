#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "transport/endpoint.hpp"

namespace hipress::transport {

/// Thrown if the store itself has failed, so that its entries are unknown.
class StoreLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws std::system_error if `error` (an errno) says that this process may open no more files or
/// has no memory left. The store is not at fault then.
void throw_if_exhausted(int error);

/// Lifetime of an entry. Matters only in a store that outlives the job.
enum class Keep : std::uint8_t {
  kForGood,        ///< permanent, so that a later job of the same name finds it
  kForRendezvous,  ///< needed until the ranks have met or given up
};

/// Key-value store through which a job's ranks exchange entries. An entry is bytes under a name of
/// letters, digits and '/'. Anybody with write access may have written an entry: its size is
/// bounded, and nothing else is guaranteed.
class Store {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;  ///< maximum size of an entry

  virtual ~Store() = default;
  /// Adds an entry atomically; false if the name is taken. Throws std::runtime_error with the
  /// reason if the entry cannot be created, StoreLost if the store fails, and std::system_error as
  /// throw_if_exhausted() does.
  virtual bool add(const std::string& name, std::string_view content, Keep keep) = 0;
  /// Waits for an entry; nullopt if the deadline passes. Throws std::runtime_error if no rank can
  /// have written the entry; throws StoreLost if the store fails.
  virtual std::optional<std::string> wait_for(const std::string& name, Clock::time_point deadline);
  /// True if entries must be removed because they would block a later job of the same name.
  virtual bool removes() const { return false; }
  /// Removes the entries that this object added, if removes().
  virtual void remove_own() noexcept {}
  /// Noun for entries in messages: "files" or "keys".
  virtual std::string_view entries() const = 0;

 protected:
  /// Entry of that name, if it exists. Throws as wait_for() does.
  virtual std::optional<std::string> find(const std::string& name) = 0;
};

/// Store for ranks that are threads of one process.
class LocalStore : public Store {
 public:
  bool add(const std::string& name, std::string_view content, Keep keep) override;
  std::optional<std::string> wait_for(const std::string& name, Clock::time_point deadline) override;
  std::string_view entries() const override { return "keys"; }

 protected:
  std::optional<std::string> find(const std::string& name) override;

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::map<std::string, std::string> entries_;
};

}  // namespace hipress::transport
