#include "traces/communication.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace hipress::traces {
namespace {

/// Letters that a name holds. Of a word, no letter comes before them: "hcom", not "...shcom".
struct LibraryRow {
  std::string_view text;
  bool is_word;
};
constexpr LibraryRow kLibraries[] = {
    {"nccl", false},     // NVIDIA's; pynccl, ncclx
    {"rccl", true},      // AMD's; its kernels are called nccl…
    {"msccl", false},    // Microsoft's
    {"oneccl", false},   // Intel's
    {"hccl", true},      // Habana's and Huawei's
    {"hcom", true},      // Huawei's
    {"mccl", true},      // Moore Threads', MetaX's
    {"ixccl", true},     // Iluvatar's
    {"xccl", true},      // Kunlun's, and PyTorch's on XPU
    {"nvshmem", false},  // NVIDIA's one-sided
    {"deep_ep", false},  // experts' all-to-all
};

struct CollectiveRow {
  std::string_view text;  ///< without underscores
  CollectiveKind collective;
};
/// In a collective's name, or in that of a kernel which says what it does.
constexpr CollectiveRow kCollectives[] = {
    {"reducescatter", CollectiveKind::kReduceScatter},
    {"allreduce", CollectiveKind::kAllReduce},
    {"crossdevicereduce", CollectiveKind::kAllReduce},  // vLLM's and aiter's
    {"allgather", CollectiveKind::kAllGather},
    {"alltoall", CollectiveKind::kOther},
    {"sendrecv", CollectiveKind::kOther},
};

/// In lower case, with or without underscores.
std::string folded(std::string_view name, bool underscores) {
  std::string text;
  for (const char letter : name) {
    if (letter == '_' && !underscores) continue;
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

std::optional<CollectiveKind> find_collective(std::string_view name) {
  const std::string text = folded(name, false);
  for (const CollectiveRow& row : kCollectives) {
    if (text.find(row.text) != std::string::npos) return row.collective;
  }
  return std::nullopt;
}

bool holds(const std::string& name, const LibraryRow& row) {
  for (std::size_t at = name.find(row.text); at != std::string::npos;
       at = name.find(row.text, at + 1)) {
    if (!row.is_word || at == 0) return true;
    if (std::isalpha(static_cast<unsigned char>(name[at - 1])) == 0) return true;
  }
  return false;
}

}  // namespace

CollectiveKind collective_named(std::string_view name) {
  // No more letters than these: "reduce" is in the names of kernels that compute.
  for (const std::string_view reduce :
       {"reduce", "_reduce_oop", "nccl:reduce", "nccl:_reduce_oop", "c10d::reduce_"}) {
    if (name == reduce) return CollectiveKind::kReduce;
  }
  return find_collective(name).value_or(CollectiveKind::kOther);
}

std::string_view text_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kOther:
      break;
  }
  return "other collective";
}

std::optional<CollectiveKind> communication_of(std::string_view kernel) {
  if (const auto collective = find_collective(kernel)) return collective;
  const std::string name = folded(kernel, true);
  const bool of_library =
      std::ranges::any_of(kLibraries, [&](const LibraryRow& row) { return holds(name, row); });
  return of_library ? std::optional(CollectiveKind::kOther) : std::nullopt;
}

}  // namespace hipress::traces
