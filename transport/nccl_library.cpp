#include "transport/nccl_library.hpp"

#include "io/environment.hpp"
#include "io/error.hpp"

#ifdef HIPRESS_HAVE_NCCL

#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <cstring>

namespace hipress::transport {
namespace {

/// NCCL's type and size in bytes for each NcclValues, in that order.
struct Values {
  ncclDataType_t type;
  std::size_t bytes;
};
constexpr Values kValues[] = {{ncclFloat32, 4}, {ncclFloat16, 2}, {ncclBfloat16, 2}};

/// Function ncclAlltoAll, which NCCL has since 2.28.
using AllToAll = ncclResult_t (*)(const void* from, void* to, std::size_t count,
                                  ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);

/// NCCL's functions, resolved from the library.
struct Functions {
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclAllReduce) all_reduce;
  AllToAll all_to_all;  ///< null: use messages
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommFinalize) finalize;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclCommInitRankConfig) init;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclGetUniqueId) unique_id;
  decltype(&ncclGetVersion) version;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclRecv) receive;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclSend) send;

  /// Resolves the functions; returns the name of a missing one, else an empty text.
  std::string take(void* library) {
    std::string missing;
    const auto find_any = [&](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    const auto find = [&](const char* name, auto& function) {
      find_any(name, function);
      if (function == nullptr) missing = name;
    };
    find_any("ncclAlltoAll", all_to_all);
    find("ncclAllGather", all_gather);
    find("ncclAllReduce", all_reduce);
    find("ncclCommAbort", abort);
    find("ncclCommDestroy", destroy);
    find("ncclCommFinalize", finalize);
    find("ncclCommGetAsyncError", async_error);
    find("ncclCommInitRankConfig", init);
    find("ncclGetErrorString", error_string);
    find("ncclGetLastError", last_error);
    find("ncclGetUniqueId", unique_id);
    find("ncclGetVersion", version);
    find("ncclGroupEnd", group_end);
    find("ncclGroupStart", group_start);
    find("ncclRecv", receive);
    find("ncclReduceScatter", reduce_scatter);
    find("ncclSend", send);
    return missing;
  }
};

class SystemLink : public NcclLink {
 public:
  SystemLink(const Functions& nccl, const std::string& id, int rank, int size)
      : nccl_(nccl), rank_(static_cast<std::size_t>(rank)), size_(static_cast<std::size_t>(size)) {
    ncclUniqueId unique;
    if (id.size() != sizeof unique) {
      throw io::RunError(fmt::format("rank 0 sent an NCCL id of {} bytes", id.size()));
    }
    std::memcpy(&unique, id.data(), sizeof unique);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    started_ = nccl_.init(&comm_, size, unique, rank, &config);
  }
  ~SystemLink() override {
    if (comm_ != nullptr) nccl_.abort(comm_);
  }
  SystemLink(const SystemLink&) = delete;
  SystemLink& operator=(const SystemLink&) = delete;

  NcclStatus status() override {
    if (comm_ == nullptr || (started_ != ncclSuccess && started_ != ncclInProgress)) {
      return status_of(started_ == ncclSuccess ? ncclInternalError : started_);
    }
    ncclResult_t result = ncclSuccess;
    const ncclResult_t asked = nccl_.async_error(comm_, &result);
    return status_of(asked != ncclSuccess ? asked : result);
  }

  NcclStatus issue(std::span<const NcclOperation> group, void* stream) override {
    ncclResult_t result = nccl_.group_start();
    for (const NcclOperation& operation : group) {
      if (failed(result)) break;
      result = enqueue(operation, static_cast<cudaStream_t>(stream));
    }
    const ncclResult_t ended = nccl_.group_end();
    return status_of(failed(result) ? result : ended);
  }

  NcclStatus finish() override {
    const ncclResult_t result = nccl_.finalize(comm_);
    finishing_ = !failed(result);
    return status_of(result);
  }

  void abort() noexcept override {
    if (comm_ != nullptr) nccl_.abort(comm_);
    comm_ = nullptr;
    started_ = ncclInvalidUsage;
  }

 private:
  static bool failed(ncclResult_t result) {
    return result != ncclSuccess && result != ncclInProgress;
  }

  ncclResult_t enqueue(const NcclOperation& operation, cudaStream_t stream) {
    const auto bytes = static_cast<std::size_t>(operation.bytes);
    const Values& values = kValues[static_cast<std::size_t>(operation.values)];
    auto* const own = static_cast<std::byte*>(operation.memory) + rank_ * (bytes / size_);
    switch (operation.kind) {
      case NcclOperation::Kind::kSend:
        return nccl_.send(operation.memory, bytes, ncclChar, operation.peer, comm_, stream);
      case NcclOperation::Kind::kReceive:
        return nccl_.receive(operation.memory, bytes, ncclChar, operation.peer, comm_, stream);
      case NcclOperation::Kind::kAllReduce:
        return nccl_.all_reduce(operation.memory, operation.memory, bytes / values.bytes,
                                values.type, ncclSum, comm_, stream);
      case NcclOperation::Kind::kAllGather:
        return nccl_.all_gather(own, operation.memory, bytes / size_, ncclChar, comm_, stream);
      case NcclOperation::Kind::kReduceScatter:
        return nccl_.reduce_scatter(operation.memory, own, bytes / size_ / values.bytes,
                                    values.type, ncclSum, comm_, stream);
      case NcclOperation::Kind::kAllToAll:
        return all_to_all(operation, bytes / size_, stream);
    }
    return ncclInternalError;
  }

  /// Uses ncclAlltoAll where available, else messages; the open group makes them one operation.
  ncclResult_t all_to_all(const NcclOperation& operation, std::size_t shard, cudaStream_t stream) {
    if (nccl_.all_to_all != nullptr) {
      return nccl_.all_to_all(operation.memory, operation.into, shard, ncclChar, comm_, stream);
    }
    const auto* const from = static_cast<const std::byte*>(operation.memory);
    auto* const to = static_cast<std::byte*>(operation.into);
    ncclResult_t result = ncclSuccess;
    for (std::size_t rank = 0; rank < size_ && !failed(result); ++rank) {
      const auto peer = static_cast<int>(rank);
      result = nccl_.send(from + rank * shard, shard, ncclChar, peer, comm_, stream);
      if (failed(result)) break;
      result = nccl_.receive(to + rank * shard, shard, ncclChar, peer, comm_, stream);
    }
    return result;
  }

  NcclStatus status_of(ncclResult_t result) {
    if (result == ncclInProgress) return {NcclState::kBusy, {}};
    if (result == ncclSuccess) {
      // Destroying a finalized communicator does not block.
      if (finishing_ && comm_ != nullptr) {
        nccl_.destroy(comm_);
        comm_ = nullptr;
        finishing_ = false;
      }
      return {};
    }
    const char* const last = nccl_.last_error(comm_);
    const std::string detail = last == nullptr || *last == '\0' ? "" : fmt::format(" ({})", last);
    return {NcclState::kFailed, nccl_.error_string(result) + detail, result == ncclRemoteError};
  }

  const Functions& nccl_;
  const std::size_t rank_, size_;
  ncclComm_t comm_ = nullptr;
  ncclResult_t started_ = ncclSuccess;  ///< result of its creation
  bool finishing_ = false;
};

class SystemLibrary : public NcclLibrary {
 public:
  explicit SystemLibrary(const std::string& file) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw io::InputError(
          fmt::format("NCCL cannot be loaded: {}; install libnccl2, put its folder into "
                      "LD_LIBRARY_PATH, or set HIPRESS_NCCL to the file",
                      dlerror()));
    }
    const std::string missing = nccl_.take(library);
    if (!missing.empty()) {
      throw io::InputError(
          fmt::format("{} has no {}: NCCL 2.20 or newer is needed", file, missing));
    }
    nccl_.version(&version_);
    if (version_ < kMinNccl) {
      throw io::InputError(fmt::format("{} is NCCL {}.{}.{}; 2.20 or newer is needed", file,
                                       version_ / 10000, version_ / 100 % 100, version_ % 100));
    }
  }

  int version() const override { return version_; }

  std::string new_id() override {
    ncclUniqueId id;
    const ncclResult_t result = nccl_.unique_id(&id);
    if (result != ncclSuccess) {
      throw io::RunError(fmt::format("NCCL makes no id: {} ({})", nccl_.error_string(result),
                                     nccl_.last_error(nullptr)));
    }
    return {reinterpret_cast<const char*>(&id), sizeof id};
  }

  std::unique_ptr<NcclLink> join(const std::string& id, int rank, int size) override {
    return std::make_unique<SystemLink>(nccl_, id, rank, size);
  }

 private:
  Functions nccl_{};
  int version_ = 0;
};

}  // namespace

std::unique_ptr<NcclLibrary> load_nccl(const std::string& file) {
  return std::make_unique<SystemLibrary>(file);
}

}  // namespace hipress::transport

#else

namespace hipress::transport {

std::unique_ptr<NcclLibrary> load_nccl(const std::string& /*file*/) {
  throw io::InputError(
      "this build does not know NCCL: configure with -DHIPRESS_CUDA=ON where nccl.h is installed, "
      "or use `transport` tcp");
}

}  // namespace hipress::transport

#endif

namespace hipress::transport {

NcclLibrary& nccl_library() {
  static const std::unique_ptr<NcclLibrary> library = [] {
    const std::string named = io::nccl_path();
    return load_nccl(named.empty() ? "libnccl.so.2" : named);
  }();
  return *library;
}

}  // namespace hipress::transport
