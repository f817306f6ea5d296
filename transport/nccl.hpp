#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "transport/endpoint.hpp"
#include "transport/nccl_library.hpp"

namespace hipress::transport {

/// One rank's end of the job's NCCL communicator. An endpoint of a different transport is its
/// control plane: it distributes the communicator's id, reports this rank's and NCCL's failures to
/// all ranks, and ends waits for NCCL when another rank fails. All ranks therefore name the same
/// culprit and abort; NCCL alone would wait for ever.
///
/// NCCL runs operations in the order of the calls, which must be the same on every rank;
/// runtime/rounds.hpp derives it. Used by one thread at a time.
class NcclCommunicator {
 public:
  /// Collective: returns when all ranks have joined, each with the calling thread's current GPU.
  /// Throws PeerError naming a rank that does not come, or whose NCCL fails. If NCCL does not
  /// connect the ranks within `timeout_s`, the cause is unknown: the culprit is then the first rank
  /// that gave up, and the text says so.
  NcclCommunicator(Endpoint& control, NcclLibrary& library, double timeout_s);
  /// Leaves in good order; aborts if the job has failed.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Marks this rank as failed: the destructor then aborts pending operations at once, and does not
  /// wait for other ranks.
  void abandon() noexcept { failed_ = true; }

  /// Enqueues a group on a CUDA stream. Returns when NCCL has accepted it, before it completes. The
  /// first message between two ranks also connects them, which takes longer. Throws PeerError as
  /// check() does, and if NCCL does not accept the group within the timeout.
  void issue(std::span<const NcclOperation> group, void* stream);

  /// Polls for failures; call it while waiting for issued groups. Throws PeerError if NCCL or
  /// another rank has failed. `awaited` is a pending group, for the error.
  void check(std::span<const NcclOperation> awaited);

  /// Aborts the job on all ranks after a stall. The culprit is the rank whose message in `awaited`
  /// is missing, unless the control plane knows better. `awaited` must not be empty.
  [[noreturn]] void give_up(std::span<const NcclOperation> awaited);

 private:
  void connect(NcclLibrary& library);
  void settle(NcclStatus status, std::span<const NcclOperation> awaited);
  [[noreturn]] void fail(int culprit, const std::string& reason,
                         std::span<const NcclOperation> awaited);
  std::optional<PeerError> known_failure();
  /// Waits up to the grace time for a report from a rank with direct evidence.
  std::optional<PeerError> hear_of_failure();
  int likely_culprit(std::span<const NcclOperation> awaited) const;
  std::vector<std::uint32_t> tags_from(int culprit, std::span<const NcclOperation> awaited) const;

  Endpoint& control_;
  const double timeout_s_;
  std::unique_ptr<NcclLink> link_;
  bool failed_ = false;

  std::mutex mutex_;
  std::optional<PeerError> failure_;    ///< failure reported by the control plane
  std::unique_ptr<Exchange> listener_;  ///< no messages; last: its threads set failure_
};

}  // namespace hipress::transport
