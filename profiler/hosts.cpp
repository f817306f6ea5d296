#include "profiler/hosts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>

#include "io/processors.hpp"
#include "job/gather.hpp"

namespace hipress::profiler {

Hosts::Hosts(const Options& options) {
  const std::vector<int> usable = io::usable_cores();
  if (options.endpoint == nullptr) {
    cores_ = static_cast<int>(usable.size());
    own_cores_ = usable;
    return;
  }
  const std::vector<std::string> boots = options.endpoint->all_gather(options.boot);
  const auto all_usable = job::gather(*options.endpoint, std::span<const int>(usable));
  const auto own = static_cast<std::size_t>(options.endpoint->rank());
  std::map<std::size_t, std::set<int>> cores_of;  // per machine, whose key is its lowest rank
  for (std::size_t rank = 0; rank < boots.size(); ++rank) {
    const auto first =
        static_cast<std::size_t>(std::ranges::find(boots, boots[rank]) - boots.begin());
    const std::size_t host = boots[rank].empty() ? rank : first;
    // This is the lowest rank that is not on rank 0's machine.
    if (host != 0 && cores_of.size() == 1) far_ = static_cast<std::uint32_t>(rank);
    std::set<int>& cores = cores_of[host];
    for (const int core : all_usable[rank]) {
      if (cores.insert(core).second && rank == own) own_cores_.push_back(core);
    }
  }
  count_ = static_cast<std::uint32_t>(cores_of.size());
  const auto fewest =
      std::ranges::min_element(cores_of, {}, [](const auto& host) { return host.second.size(); });
  cores_ = static_cast<int>(fewest->second.size());
}

}  // namespace hipress::profiler
