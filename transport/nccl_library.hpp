#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hipress::transport {

/// Number type of a sum.
enum class NcclValues : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

/// One rank's part of an operation in a group. Pointers are device memory.
struct NcclOperation {
  enum class Kind : std::uint8_t {
    kSend,
    kReceive,
    // Collectives. `memory` holds equal shards, one per rank in rank order.
    kAllReduce,      ///< sums all values
    kAllGather,      ///< sends this rank's shard, and receives the shards of all other ranks
    kReduceScatter,  ///< replaces this rank's shard by its sum over all ranks, and sends the others
    kAllToAll,       ///< sends shard i to rank i; receives into `into`
  };
  Kind kind = Kind::kSend;
  int peer = 0;           ///< peer of a message
  std::uint32_t tag = 0;  ///< name of the message or the collective in errors
  void* memory = nullptr;
  std::int64_t bytes = 0;                    ///< size; for a collective, of all shards together
  NcclValues values = NcclValues::kFloat32;  ///< type of the summed values
  void* into = nullptr;  ///< all-to-all: destination, as long as `memory`, not overlapping
};

enum class NcclState : std::uint8_t { kReady, kBusy, kFailed };

/// State of a communicator.
struct NcclStatus {
  NcclState state = NcclState::kReady;
  std::string why;      ///< kFailed: NCCL's error text
  bool remote = false;  ///< kFailed: NCCL blames another rank
};

/// A non-blocking NCCL communicator: no call waits for another rank. Used by one thread at a time.
class NcclLink {
 public:
  /// Destroys the communicator; aborts it unless finish() has completed.
  virtual ~NcclLink() = default;
  virtual NcclStatus status() = 0;
  /// Enqueues a group on a CUDA stream. It is an error to call this while the communicator is busy.
  virtual NcclStatus issue(std::span<const NcclOperation> group, void* stream) = 0;
  /// Starts to leave in good order; the state is kReady when all operations are done.
  virtual NcclStatus finish() = 0;
  /// Aborts pending operations: kernels on the GPU return. Only destruction may follow.
  virtual void abort() noexcept = 0;
};

/// The NCCL library that this process has loaded; thread-safe.
class NcclLibrary {
 public:
  virtual ~NcclLibrary() = default;
  virtual int version() const = 0;  ///< in NCCL's coding: 22809 is 2.28.9
  /// Unique id of a communicator, which rank 0 distributes. Throws io::RunError if NCCL fails.
  virtual std::string new_id() = 0;
  /// Starts to create a communicator on the thread's current GPU; does not wait until it is ready.
  virtual std::unique_ptr<NcclLink> join(const std::string& id, int rank, int size) = 0;
};

/// Minimum version: 2.20.
inline constexpr int kMinNccl = 22000;

/// Value of NCCL_SOCKET_IFNAME for an interface of this host, given by its name or by one of its
/// addresses; empty: loopback. Throws io::InputError if there is no such interface.
std::string nccl_interface(const std::string& interface);

/// Binds NCCL's bootstrap and socket messages to that interface, through NCCL_SOCKET_IFNAME; a
/// value that the user has set takes precedence. By default NCCL would choose an interface itself.
/// Call it before the first call of NCCL, while the process has one thread.
void bind_nccl(const std::string& interface);

/// Loads NCCL from a file. Throws io::InputError, with the names tried, if it is missing or too
/// old, or if this build has no NCCL support.
std::unique_ptr<NcclLibrary> load_nccl(const std::string& file);

/// The system's NCCL, loaded on first use, so nothing else depends on it: libnccl.so.2 as the
/// loader finds it, or the file that HIPRESS_NCCL names. Throws as load_nccl() does.
NcclLibrary& nccl_library();

}  // namespace hipress::transport
