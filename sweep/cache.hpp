#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "casync/task.hpp"
#include "io/descriptors.hpp"

namespace hipress::sweep {

/// How an outcome depends on what is uncertain, in seconds: sim::Response's parts.
struct Sensitivity {
  double host_s = 0, links_s = 0, wire_s = 0;
  bool operator==(const Sensitivity&) const = default;
};

/// What a plan came to on its machines.
struct Outcome {
  bool possible = true;  ///< else there is no such plan, and the rest means nothing
  casync::Picoseconds iteration{};
  casync::Picoseconds forward{};
  casync::Picoseconds compute{};
  std::int64_t tasks = 0;  ///< of the whole graph
  /// None: nobody has asked.
  std::optional<Sensitivity> sensitivity = {};
  bool operator==(const Outcome&) const = default;
};

/// Stores outcomes under what they depend on, in a folder that several processes may use at once
/// and that outlives them, however they end. Each process appends outcomes as they come to a
/// journal of its own, a line each, and reads all other journals when it begins. Lines that are cut
/// off or damaged are ignored. Searched plans lie beside the journals, as plan YAML.
class Cache {
 public:
  /// Reads what is in the folder, which is made when something is kept. InputError if it is none,
  /// or cannot be read or written to.
  explicit Cache(std::string folder);

  /// Null if it is not there.
  const Outcome* find(const std::string& key) const;
  /// Keeps an outcome, on disk when it returns. Several threads may call it at a time. RunError,
  /// with a remedy, if it cannot be written.
  void put(const std::string& key, const Outcome& outcome);
  /// Where the plan of that key lies, or is to be written.
  std::string plan_file(const std::string& key) const;

  const std::string& folder() const { return folder_; }
  std::size_t size() const { return outcomes_.size(); }

 private:
  void read(const std::string& journal);
  void open_journal();

  const std::string folder_;
  std::unordered_map<std::string, Outcome> outcomes_;  ///< that were there at the beginning
  std::mutex mutex_;
  std::string journal_name_;
  io::Descriptor journal_;
};

}  // namespace hipress::sweep
