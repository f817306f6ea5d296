#include "casync/plan.hpp"

#include <algorithm>
#include <stdexcept>

namespace hipress::casync {

TransferOrder parse_transfer_order(std::string_view name) {
  if (name == "ready") return TransferOrder::kReady;
  if (name == "need") return TransferOrder::kNeed;
  throw std::invalid_argument("unknown transfer order '" + std::string(name) +
                              "'; known are ready, need");
}

const char* to_string(TransferOrder order) {
  return order == TransferOrder::kReady ? "ready" : "need";
}

Slice slice(std::int64_t elements, std::int64_t partitions, std::int64_t k) {
  const std::int64_t share = (elements + partitions - 1) / partitions;
  const std::int64_t length = (share + kSliceWord - 1) / kSliceWord * kSliceWord;
  const std::int64_t begin = std::min(k * length, elements);
  return {begin, std::min(length, elements - begin)};
}

}  // namespace hipress::casync
