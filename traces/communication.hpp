#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hipress::traces {

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kReduce,  ///< reduction to one rank
  kOther
};

/// Kind of a collective from the name that PyTorch gives it: "allreduce", "_reduce_scatter_base",
/// "all_gather_into_tensor_coalesced", "c10d::allreduce_".
CollectiveKind collective_named(std::string_view name);

/// Name of a kind, such as "all-reduce" or "other collective".
std::string_view text_of(CollectiveKind kind);

/// Kind of collective that a kernel runs, from its name; empty if the kernel computes. Recognises
/// NCCL, RCCL, MSCCL, oneCCL, HCCL, MCCL, NVSHMEM and similar libraries, and all-reduces of
/// frameworks. Kernels of Inductor and of PyTorch's own operators always compute, even if their
/// names contain a collective.
std::optional<CollectiveKind> communication_of(std::string_view kernel);

}  // namespace hipress::traces
