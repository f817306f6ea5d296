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
/// off or damaged, or say what no simulation comes to, are ignored. Searched plans lie beside the
/// journals, as plan YAML whose last line is a checksum of the text and what it is kept under.
class Cache {
 public:
  /// Reads what is in the folder, which is made when something is kept. InputError if it is none,
  /// cannot be read or written to, or if others could have written what is in it
  /// (io/private_folder.hpp).
  explicit Cache(std::string folder);

  /// Null if it is not there.
  const Outcome* find(const std::string& key) const;
  /// Keeps an outcome, on disk when it returns. Several threads may call it at a time. RunError,
  /// with a remedy, if it cannot be written.
  void put(const std::string& key, const Outcome& outcome);
  /// The text of the plan that is kept under that key; none if there is none that is whole.
  std::optional<std::string> find_plan(const std::string& key) const;
  /// Keeps a plan's text. RunError if it cannot be written.
  void put_plan(const std::string& key, const std::string& text);

  const std::string& folder() const { return folder_; }
  std::size_t size() const { return outcomes_.size(); }
  /// Lines that were whole and said what no simulation comes to.
  std::size_t incredible() const { return incredible_; }

 private:
  void read(std::string_view journal);
  void open_journal();
  const io::PrivateFolder& open_folder();

  const std::string folder_;
  std::optional<io::PrivateFolder> open_;              ///< none: it is not there yet
  std::unordered_map<std::string, Outcome> outcomes_;  ///< that were there at the beginning
  std::size_t incredible_ = 0;
  mutable std::mutex mutex_;  ///< of what follows, and of open_ when it is made
  std::string journal_name_;
  io::Descriptor journal_;
};

}  // namespace hipress::sweep
