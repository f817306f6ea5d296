#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "casync/task.hpp"
#include "io/descriptors.hpp"
#include "io/private_folder.hpp"

namespace hipress::sweep {

/// Parts of an iteration time that depend on uncertain costs, in seconds (see sim::Response).
struct Sensitivity {
  double host_s = 0, links_s = 0, wire_s = 0;
  bool operator==(const Sensitivity&) const = default;
};

/// Simulated times of a plan on its machines.
struct Outcome {
  bool possible = true;  ///< false: the plan does not exist, and the other members mean nothing
  casync::Picoseconds iteration{};
  casync::Picoseconds forward{};
  casync::Picoseconds compute{};
  std::int64_t tasks = 0;  ///< tasks of the whole graph
  /// Sensitivity of the iteration time; empty if it was not computed.
  std::optional<Sensitivity> sensitivity = {};
  bool operator==(const Outcome&) const = default;
};

/// Persistent cache of outcomes by key (Identities), which concurrent processes share. Each process
/// appends outcomes to a journal of its own, one per line, and reads all journals at start. Lines
/// that are truncated, damaged or impossible are ignored. Searched plans are files beside the
/// journals: plan YAML whose last line is a checksum of key and text.
class Cache {
 public:
  /// Reads the folder's journals. The first put() or put_plan() creates the folder. Throws
  /// InputError unless the folder can be read and written, and other users cannot write to it
  /// (io/private_folder.hpp).
  explicit Cache(std::string folder);

  /// Outcome of a key, as read at start; null if the key is unknown.
  const Outcome* find(const std::string& key) const;
  /// Appends an outcome to the journal. It has been written when the call returns. Thread-safe.
  /// Throws RunError with a remedy if it cannot be written.
  void put(const std::string& key, const Outcome& outcome);
  /// Text of the plan with that key; empty if it is missing or damaged. Thread-safe.
  std::optional<std::string> find_plan(const std::string& key) const;
  /// Stores a plan's text. Thread-safe. Throws RunError if it cannot be written.
  void put_plan(const std::string& key, const std::string& text);

  const std::string& folder() const { return folder_; }
  std::size_t size() const { return outcomes_.size(); }
  /// Number of lines that are intact but hold impossible outcomes.
  std::size_t incredible() const { return incredible_; }

 private:
  void read(std::string_view journal);
  void open_journal();
  const io::PrivateFolder& open_folder();

  const std::string folder_;
  std::optional<io::PrivateFolder> open_;              ///< empty: not created yet
  std::unordered_map<std::string, Outcome> outcomes_;  ///< as read at start
  std::size_t incredible_ = 0;
  mutable std::mutex mutex_;  ///< guards the members below, and open_ while threads run
  std::string journal_name_;
  io::Descriptor journal_;
};

}  // namespace hipress::sweep
