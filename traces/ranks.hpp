#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hipress::traces {

/// Evidence that a file holds traces of several ranks, merged for a viewer. In the trace of one
/// rank, a single process trains, each step occurs once, and collectives run on one device.
/// Processes that only load data do not count.
class RankEvidence {
 public:
  /// Adds a process that trains: it runs backward or steps, or communicates.
  void add_process(std::uint64_t process);
  void add_device(std::int64_t device);
  void add_step(const std::string& name);
  /// Adds a rank that the file names as its recorder.
  void add_rank(std::int64_t rank);
  /// Adds other evidence. `what` is a sentence without its full stop.
  void add_reason(std::string what);
  /// Throws io::InputError if there is evidence. The error states it, but not the file's name.
  void require_one() const;

 private:
  std::set<std::uint64_t> processes_;
  std::set<std::int64_t> devices_, ranks_;
  std::map<std::string, int> steps_;
  std::vector<std::string> reasons_;
};

}  // namespace hipress::traces
