#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hipress::traces {

/// Kinds of collectives.
enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kReduce,  ///< reduction to one rank
  kOther
};

/// Kind of a collective by PyTorch's name: "allreduce", "_reduce_scatter_base",
/// "all_gather_into_tensor_coalesced", "c10d::allreduce_".
CollectiveKind collective_named(std::string_view name);

/// Name of a kind: "all-reduce", …; "other collective".
std::string_view text_of(CollectiveKind kind);

/// Kind of collective by a kernel's name; empty if it computes. Knows NCCL, RCCL, MSCCL, oneCCL,
/// HCCL, MCCL, NVSHMEM, and all-reduces of frameworks. Kernels of Inductor and of PyTorch's own
/// operators always compute, whatever their names contain.
std::optional<CollectiveKind> communication_of(std::string_view kernel);

}  // namespace hipress::traces
