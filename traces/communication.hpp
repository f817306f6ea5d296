#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hipress::traces {

/// What ranks do together.
enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kReduce,  ///< to one rank
  kOther
};

/// Of a collective's name as PyTorch writes it: "allreduce", "_reduce_scatter_base",
/// "all_gather_into_tensor_coalesced", "c10d::allreduce_".
CollectiveKind collective_named(std::string_view name);

/// "all-reduce", …; "other collective".
std::string_view text_of(CollectiveKind kind);

/// What the kernel of that name communicates; nullopt if it computes. Knows the names of NCCL,
/// RCCL, MSCCL, oneCCL, HCCL, MCCL, NVSHMEM, and of all-reduces that frameworks bring themselves.
/// Kernels of Inductor and of PyTorch's own operators compute, whatever their names hold.
std::optional<CollectiveKind> communication_of(std::string_view kernel);

}  // namespace hipress::traces
