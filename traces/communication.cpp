#include "traces/communication.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace hipress::traces {
namespace {

/// Text in the names of a library's kernels. If `is_word`, no letter may precede it: "…shcom" has
/// no "hcom".
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
/// Kinds of collectives by a text in the name of a collective or of its kernel.
constexpr CollectiveRow kCollectives[] = {
    {"reducescatter", CollectiveKind::kReduceScatter},
    {"allreduce", CollectiveKind::kAllReduce},
    {"crossdevicereduce", CollectiveKind::kAllReduce},  // vLLM's and aiter's
    {"allgather", CollectiveKind::kAllGather},
    {"alltoall", CollectiveKind::kOther},
    {"sendrecv", CollectiveKind::kOther},
};

/// Prefixes of kernels that compute. Inductor also names a kernel after collectives around it.
constexpr std::string_view kComputing[] = {"triton_", "at::native::"};

bool is_upper(char letter) { return std::isupper(static_cast<unsigned char>(letter)) != 0; }
bool is_letter(char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0; }
char lower(char letter) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

std::string folded(std::string_view name) {
  std::string text;
  for (const char letter : name) text += lower(letter);
  return text;
}

/// Name without its return type and without arguments of templates and functions, since these may
/// name other operators.
std::string own_name(std::string_view kernel) {
  constexpr std::string_view kVoid = "void ", kAnonymous = "(anonymous namespace)";
  if (kernel.starts_with(kVoid)) kernel.remove_prefix(kVoid.size());
  std::string name;
  int depth = 0;
  for (std::size_t at = 0; at < kernel.size(); ++at) {
    if (kernel.substr(at).starts_with(kAnonymous)) {
      at += kAnonymous.size() - 1;
      continue;
    }
    if (kernel[at] == '(' && depth == 0) break;
    if (kernel[at] == '<') ++depth;
    if (depth == 0) name += kernel[at];
    if (kernel[at] == '>') --depth;
  }
  return name;
}

/// Kind of the collective whose name begins a word of `name`: in "all_reduce", "ncclAllReduce", but
/// not in "small_gather". Empty without a collective.
std::optional<CollectiveKind> find_collective(std::string_view name) {
  std::string text;
  std::vector<bool> begins;  // true where a word begins
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '_') continue;
    const char before = at > 0 ? name[at - 1] : '_';
    const bool ends_capitals = at + 1 < name.size() && !is_upper(name[at + 1]);
    text += lower(name[at]);
    begins.push_back(!is_letter(before) ||
                     (is_upper(name[at]) && (!is_upper(before) || ends_capitals)));
  }
  for (const CollectiveRow& row : kCollectives) {
    for (std::size_t at = text.find(row.text); at != std::string::npos;
         at = text.find(row.text, at + 1)) {
      if (begins[at]) return row.collective;
    }
  }
  return std::nullopt;
}

bool holds(const std::string& name, const LibraryRow& row) {
  for (std::size_t at = name.find(row.text); at != std::string::npos;
       at = name.find(row.text, at + 1)) {
    if (!row.is_word || at == 0) return true;
    if (!is_letter(name[at - 1])) return true;
  }
  return false;
}

}  // namespace

CollectiveKind collective_named(std::string_view name) {
  // "reduce" must be the whole name, since kernels that compute have it in theirs.
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
  const std::string own = own_name(kernel);
  for (const std::string_view computing : kComputing) {
    if (own.starts_with(computing)) return std::nullopt;
  }
  if (const auto collective = find_collective(own)) return collective;
  const std::string name = folded(kernel);
  const bool of_library =
      std::ranges::any_of(kLibraries, [&](const LibraryRow& row) { return holds(name, row); });
  return of_library ? std::optional(CollectiveKind::kOther) : std::nullopt;
}

}  // namespace hipress::traces
