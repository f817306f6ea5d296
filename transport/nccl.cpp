#include "transport/nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace hipress::transport {
namespace {

using Kind = NcclOperation::Kind;

/// Time for which to spin until NCCL accepts a group; usually this is enough. A sleep would last
/// longer than the remaining wait, and delay later groups. A larger value keeps a core busy.
constexpr auto kSpin = std::chrono::microseconds(200);

/// Pause between polls after kSpin. A shorter one issues groups sooner; a longer one saves calls.
constexpr auto kNcclPause = std::chrono::microseconds(20);

/// Maximum wait for the control plane to name the culprit after NCCL has failed: it notices a dead
/// process within milliseconds. Also the maximum wait for NCCL when leaving in good order.
constexpr double kGrace_s = 0.5;

std::chrono::nanoseconds from_s(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

std::string name_of(Kind collective) {
  switch (collective) {
    case Kind::kAllGather:
      return "an all-gather";
    case Kind::kReduceScatter:
      return "a reduce-scatter";
    case Kind::kAllToAll:
      return "an all-to-all";
    default:
      return "an all-reduce";
  }
}

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

NcclCommunicator::NcclCommunicator(Endpoint& control, NcclLibrary& library, double timeout_s)
    : control_(control), timeout_s_(timeout_s) {
  listener_ = control_.prepare({}, {}, {.arrived = {}, .failed = [this](const PeerError& error) {
                                          const std::lock_guard lock(mutex_);
                                          if (!failure_) failure_ = error;
                                        }});
  connect(library);
}

NcclCommunicator::~NcclCommunicator() {
  if (!link_) return;
  if (!failed_ && !known_failure()) {
    const auto deadline = Clock::now() + from_s(std::min(timeout_s_, kGrace_s));
    NcclStatus status = link_->finish();
    while (status.state == NcclState::kBusy && Clock::now() < deadline) {
      std::this_thread::sleep_for(kNcclPause);
      status = link_->status();
    }
    if (status.state == NcclState::kReady) return;
  }
  link_->abort();
}

void NcclCommunicator::connect(NcclLibrary& library) {
  // Gather every rank's NCCL version, and rank 0's id. Different versions do not understand each
  // other, and NCCL would not report that in time.
  const bool first = control_.rank() == 0;
  const std::vector<std::string> texts = control_.all_gather(
      fmt::format("{} {}", library.version(), first ? library.new_id() : std::string()));
  const auto version_of = [&](std::size_t rank) {
    return texts[rank].substr(0, texts[rank].find(' '));
  };
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (version_of(rank) == version_of(0)) continue;
    fail(static_cast<int>(rank),
         fmt::format("rank {} has NCCL {}, rank 0 has {}; install one version everywhere", rank,
                     version_text(std::stoi(version_of(rank))),
                     version_text(std::stoi(version_of(0)))),
         {});
  }
  const std::string id = texts.front().substr(texts.front().find(' ') + 1);
  link_ = library.join(id, control_.rank(), control_.size());
  settle({NcclState::kBusy, {}}, {});
}

void NcclCommunicator::issue(std::span<const NcclOperation> group, void* stream) {
  if (group.empty()) return;
  settle(link_->issue(group, stream), group);
}

void NcclCommunicator::check(std::span<const NcclOperation> awaited) {
  if (const auto failure = known_failure()) {
    fail(failure->culprit, failure->what(), awaited);
  }
  const NcclStatus status = link_->status();
  if (status.state == NcclState::kFailed) settle(status, awaited);
}

void NcclCommunicator::settle(NcclStatus status, std::span<const NcclOperation> awaited) {
  const auto begin = Clock::now();
  while (status.state == NcclState::kBusy) {
    if (const auto failure = known_failure()) fail(failure->culprit, failure->what(), awaited);
    const auto waited = Clock::now() - begin;
    if (waited > from_s(timeout_s_)) give_up(awaited);
    if (waited < kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNcclPause);
    }
    status = link_->status();
  }
  if (status.state == NcclState::kReady) return;
  // A dead rank breaks connections of NCCL and of the control plane; the latter names it.
  if (const auto failure = hear_of_failure()) fail(failure->culprit, failure->what(), awaited);
  const int culprit = status.remote ? likely_culprit(awaited) : control_.rank();
  fail(culprit, fmt::format("NCCL on rank {}: {}", control_.rank(), status.why), awaited);
}

void NcclCommunicator::give_up(std::span<const NcclOperation> awaited) {
  if (const auto failure = known_failure()) fail(failure->culprit, failure->what(), awaited);
  if (const auto silent = control_.silence()) fail(silent->culprit, silent->what(), awaited);
  if (awaited.empty()) {
    fail(control_.rank(),
         fmt::format("NCCL has connected no ranks for {} s; rank {} was the first to give up, and "
                     "no rank is known to be at fault: NCCL_DEBUG=WARN shows NCCL's progress, and "
                     "`interface` sets its network",
                     timeout_s_, control_.rank()),
         awaited);
  }
  const int culprit = likely_culprit(awaited);
  const std::string what =
      culprit == control_.rank()
          ? fmt::format("rank {} waits for all ranks in {}", culprit, name_of(awaited.front().kind))
          : fmt::format("rank {} sent nothing to rank {}", culprit, control_.rank());
  fail(culprit, fmt::format("{}, for {} s", what, timeout_s_), awaited);
}

void NcclCommunicator::fail(int culprit, const std::string& reason,
                            std::span<const NcclOperation> awaited) {
  failed_ = true;
  control_.abort(culprit, reason);  // first, since the others are waiting
  if (link_) link_->abort();
  // Prefer the failure that all ranks have agreed on.
  if (const auto agreed = hear_of_failure()) {
    throw PeerError(agreed->culprit, agreed->what(), tags_from(agreed->culprit, awaited),
                    agreed->loss);
  }
  throw PeerError(culprit, reason, tags_from(culprit, awaited));
}

std::optional<PeerError> NcclCommunicator::known_failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<PeerError> NcclCommunicator::hear_of_failure() {
  const auto deadline = Clock::now() + from_s(std::min(kGrace_s, timeout_s_ / 4));
  auto failure = known_failure();
  while (!failure && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    failure = known_failure();
  }
  return failure;
}

int NcclCommunicator::likely_culprit(std::span<const NcclOperation> awaited) const {
  for (const Kind kind : {Kind::kReceive, Kind::kSend}) {
    const auto found = std::ranges::find(awaited, kind, &NcclOperation::kind);
    if (found != awaited.end()) return found->peer;
  }
  return control_.rank();
}

std::vector<std::uint32_t> NcclCommunicator::tags_from(
    int culprit, std::span<const NcclOperation> awaited) const {
  std::vector<std::uint32_t> tags;
  for (const NcclOperation& operation : awaited) {
    if (operation.kind == Kind::kReceive && operation.peer == culprit)
      tags.push_back(operation.tag);
  }
  std::ranges::sort(tags);
  return tags;
}

}  // namespace hipress::transport
