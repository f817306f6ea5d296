#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hipress::traces {

/// Evidence that a file holds the traces of several ranks, merged for a viewer. A trace of one rank
/// has one process that trains, each step once, and collectives on one device. Processes that only
/// load data are not ranks.
class RankEvidence {
 public:
  /// Adds a process that trains: it goes backward, steps, or communicates.
  void add_process(std::uint64_t process);
  void add_device(std::int64_t device);
  void add_step(const std::string& name);
  /// Adds a rank that, by the file's own words, recorded it.
  void add_rank(std::int64_t rank);
  /// Adds evidence of another kind. `what` is a sentence without its end.
  void add_reason(std::string what);
  /// Throws io::InputError, without the file's name, that names the evidence if there is any.
  void require_one() const;

 private:
  std::set<std::uint64_t> processes_;
  std::set<std::int64_t> devices_, ranks_;
  std::map<std::string, int> steps_;
  std::vector<std::string> reasons_;
};

}  // namespace hipress::traces
