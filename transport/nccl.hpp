#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "transport/endpoint.hpp"
#include "transport/nccl_library.hpp"

namespace hipress::transport {

/// One rank's end of the job's one NCCL communicator. An endpoint of another transport is its
/// control plane: it passes the communicator's id to all ranks, and reports a failure of NCCL or
/// its own to all ranks. A failure that it learns of ends waits for NCCL here. So all ranks name
/// the same culprit, and every one of them aborts: NCCL alone would wait for ever.
///
/// NCCL runs what a rank issues in the order of its calls; every rank must keep one order, as
/// runtime/rounds.hpp derives it. Used by one thread at a time.
class NcclCommunicator {
 public:
  /// Returns when all ranks have joined; all must call it. The GPU is the calling thread's current
  /// one. PeerError names a rank that does not come, or whose NCCL fails. If NCCL does not connect
  /// the ranks within `timeout_s`, nobody knows which one is at fault: the culprit is then the rank
  /// that was the first to give up, and the text says so.
  NcclCommunicator(Endpoint& control, NcclLibrary& library, double timeout_s);
  /// Leaves in good order, or aborts if the job has failed.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// This rank has failed: what is under way is to end without the others.
  void abandon() noexcept { failed_ = true; }

  /// Enqueues a group on a CUDA stream, and returns when NCCL has accepted it, before the group is
  /// done. The first message between two ranks also makes their connection, which takes longer.
  /// PeerError as check(), and when NCCL has not accepted the group within the timeout.
  void issue(std::span<const NcclOperation> group, void* stream);

  /// To be called while waiting for what was issued: throws PeerError when NCCL or another rank has
  /// failed. `awaited` is a group under way, for the error.
  void check(std::span<const NcclOperation> awaited);

  /// Nothing happens any more: ends the job on all ranks, with the rank whose message of `awaited`
  /// does not come as culprit, unless the control plane knows better. Not without any awaited.
  [[noreturn]] void give_up(std::span<const NcclOperation> awaited);

 private:
  void connect(NcclLibrary& library);
  void settle(NcclStatus status, std::span<const NcclOperation> awaited);
  [[noreturn]] void fail(int culprit, const std::string& reason,
                         std::span<const NcclOperation> awaited);
  std::optional<PeerError> known_failure();
  /// Waits a little for a report from a rank with direct evidence.
  std::optional<PeerError> hear_of_failure();
  int likely_culprit(std::span<const NcclOperation> awaited) const;
  std::vector<std::uint32_t> tags_from(int culprit, std::span<const NcclOperation> awaited) const;

  Endpoint& control_;
  const double timeout_s_;
  std::unique_ptr<NcclLink> link_;
  bool failed_ = false;

  std::mutex mutex_;
  std::optional<PeerError> failure_;    ///< what the control plane says
  std::unique_ptr<Exchange> listener_;  ///< without messages; last: its threads set failure_
};

}  // namespace hipress::transport
