#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hipress::traces {

/// Evidence that a file holds the traces of several ranks, as where they were put together for a
/// viewer. A trace of one rank has one process that trains, each step once, and collectives on one
/// device; processes that do nothing but load data are no ranks.
class RankEvidence {
 public:
  /// Trains: goes backward, steps, or communicates.
  void add_process(std::uint64_t process);
  void add_device(std::int64_t device);
  void add_step(const std::string& name);
  /// That it recorded the file, as it says itself.
  void add_rank(std::int64_t rank);
  /// Something else that a trace of one rank has once; `what` is a sentence without its end.
  void add_reason(std::string what);
  /// io::InputError, without the file's name, that names the evidence if there is any.
  void require_one() const;

 private:
  std::set<std::uint64_t> processes_;
  std::set<std::int64_t> devices_, ranks_;
  std::map<std::string, int> steps_;
  std::vector<std::string> reasons_;
};

}  // namespace hipress::traces
