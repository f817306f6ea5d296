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

/// The store itself has failed: nobody knows which entries it has.
class StoreLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// std::system_error if the errno says that this process may open no more files, or has no more
/// memory: that is its own fault, and no store's.
void throw_if_exhausted(int error);

/// How long an entry is needed. Only a store that outlives the job makes a difference.
enum class Keep : std::uint8_t {
  kForGood,        ///< so that a later job of the same name meets it
  kForRendezvous,  ///< until the ranks have met, or have given up
};

/// Where the ranks of a job leave entries for other ranks. An entry is bytes under a name of
/// letters, digits and '/'. Anybody who can write to the store may have left an entry, so the size
/// of an entry is bounded, and nothing else is promised of it.
class Store {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;  ///< of an entry

  virtual ~Store() = default;
  /// Makes the entry, whole or not at all; false if there is one of this name. Throws
  /// std::runtime_error, which says why, if the entry cannot be made, StoreLost if the store fails,
  /// and std::system_error as throw_if_exhausted() does.
  virtual bool add(const std::string& name, std::string_view content, Keep keep) = 0;
  /// Waits for the entry; nullopt if there is none at the deadline. std::runtime_error if the entry
  /// is nothing that a rank can have made; StoreLost.
  virtual std::optional<std::string> wait_for(const std::string& name, Clock::time_point deadline);
  /// True of a store whose entries would stay in the way of a later job of the same name.
  virtual bool removes() const { return false; }
  /// Removes what this object added, in such a store.
  virtual void remove_own() noexcept {}
  /// What entries are called in messages.
  virtual std::string_view entries() const = 0;

 protected:
  /// The entry if it is there; errors as those of wait_for.
  virtual std::optional<std::string> find(const std::string& name) = 0;
};

/// For ranks that are threads of one process.
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
