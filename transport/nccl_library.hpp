#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hipress::transport {

/// What NCCL sums.
enum class NcclValues : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

/// One rank's part of a group: memory is the GPU's.
struct NcclOperation {
  enum class Kind : std::uint8_t {
    kSend,
    kReceive,
    // Of all ranks; in `memory`, which rank's shard is the rank-th of as many equal ones:
    kAllReduce,      ///< sums all values
    kAllGather,      ///< fills all shards from this rank's own
    kReduceScatter,  ///< sums this rank's own shard; the others' hold what this rank adds to them
    kAllToAll,       ///< gives each rank its shard, for the one of this rank in its `into`
  };
  Kind kind = Kind::kSend;
  int peer = 0;           ///< of a message
  std::uint32_t tag = 0;  ///< names the message, or the collective, in errors
  void* memory = nullptr;
  std::int64_t bytes = 0;                    ///< of a collective: of all shards together
  NcclValues values = NcclValues::kFloat32;  ///< of what is summed
  void* into = nullptr;                      ///< of an all-to-all; as long as `memory`, and apart
};

enum class NcclState : std::uint8_t { kReady, kBusy, kFailed };

/// What NCCL says of a communicator.
struct NcclStatus {
  NcclState state = NcclState::kReady;
  std::string why;      ///< kFailed: in NCCL's words
  bool remote = false;  ///< kFailed: another rank's doing, as far as NCCL can tell
};

/// A communicator of NCCL's, in its non-blocking configuration: no call waits for another rank. Not
/// for several threads at a time.
class NcclLink {
 public:
  /// Frees it; aborts it unless finish() has brought it to its end.
  virtual ~NcclLink() = default;
  virtual NcclStatus status() = 0;
  /// Enqueues a group on a CUDA stream. What is issued while the communicator is busy is an error.
  virtual NcclStatus issue(std::span<const NcclOperation> group, void* stream) = 0;
  /// Starts to leave in good order; ready when all has been done.
  virtual NcclStatus finish() = 0;
  /// Ends what is under way: kernels on the GPU return. Nothing but destruction comes after.
  virtual void abort() noexcept = 0;
};

/// NCCL as this process found it; thread-safe.
class NcclLibrary {
 public:
  virtual ~NcclLibrary() = default;
  virtual int version() const = 0;  ///< as NCCL codes it: 22809 is 2.28.9
  /// A text that rank 0 gives to all. io::RunError if NCCL cannot make one.
  virtual std::string new_id() = 0;
  /// Starts to make the communicator on the thread's current GPU, and returns while it is made.
  virtual std::unique_ptr<NcclLink> join(const std::string& id, int rank, int size) = 0;
};

/// The least version that has all that is needed: 2.20.
inline constexpr int kMinNccl = 22000;

/// What NCCL_SOCKET_IFNAME must say for an interface of this host, given by its name or by an
/// address of its; empty: loopback. io::InputError if there is none such.
std::string nccl_interface(const std::string& interface);

/// Binds NCCL to that interface, as gloo is: for its bootstrap and for messages that it moves
/// through sockets. By default NCCL would choose one itself. If the user has set
/// NCCL_SOCKET_IFNAME, that holds. To be called before the first call of NCCL, by the only thread.
void bind_nccl(const std::string& interface);

/// NCCL from a file. io::InputError that says what was tried if there is none or it is too old, or
/// if this build does not know NCCL.
std::unique_ptr<NcclLibrary> load_nccl(const std::string& file);

/// The system's NCCL, loaded when first asked for, so that nothing else needs it to be there:
/// libnccl.so.2 as the loader finds it, or from HIPRESS_NCCL, a file. Errors as load_nccl().
NcclLibrary& nccl_library();

}  // namespace hipress::transport
