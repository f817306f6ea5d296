#include "traces/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/error.hpp"

namespace hipress::traces {
namespace {

constexpr std::size_t kMost = 1024;  // largest number of entries per kind of evidence

template <class T>
void keep(std::set<T>& all, T one) {
  if (all.size() < kMost) all.insert(one);
}

std::string times(int count) { return count == 2 ? "twice" : fmt::format("{} times", count); }

}  // namespace

void RankEvidence::add_process(std::uint64_t process) { keep(processes_, process); }
void RankEvidence::add_device(std::int64_t device) { keep(devices_, device); }
void RankEvidence::add_rank(std::int64_t rank) { keep(ranks_, rank); }

void RankEvidence::add_step(const std::string& name) {
  if (steps_.size() < kMost || steps_.contains(name)) ++steps_[name];
}

void RankEvidence::add_reason(std::string what) {
  if (reasons_.empty()) reasons_.push_back(std::move(what));
}

void RankEvidence::require_one() const {
  std::vector<std::string> found = reasons_;
  if (processes_.size() > 1) {
    found.push_back(fmt::format("events of {} processes train", processes_.size()));
  }
  const auto most =
      std::ranges::max_element(steps_, {}, &std::pair<const std::string, int>::second);
  if (most != steps_.end() && most->second > 1) {
    found.push_back(fmt::format("{} occurs {}", most->first, times(most->second)));
  }
  if (ranks_.size() > 1) {
    found.push_back(fmt::format("ranks {} say that they recorded it", fmt::join(ranks_, " and ")));
  }
  if (devices_.size() > 1) {
    found.push_back(fmt::format("collectives run on {} devices", devices_.size()));
  }
  if (found.empty()) return;
  // If several devices are the only evidence, one process may have used several GPUs.
  const bool one_process = found.size() == 1 && devices_.size() > 1;
  throw io::InputError(fmt::format(
      "holds the traces of several ranks{}: {}; give the file of one rank{}",
      one_process ? ", or of one process with several GPUs" : "", fmt::join(found, ", "),
      one_process ? ", traced with one process per GPU" : " alone"));
}

}  // namespace hipress::traces
