#include "casync/plan.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::casync {

std::int64_t Algorithm::message_bytes(std::int64_t elements) const {
  const std::int64_t most = encoded_bytes(elements);
  if (share == 1) return most;
  return (static_cast<std::int64_t>(std::ceil(share * static_cast<double>(most))) + 3) / 4 * 4;
}

TransferOrder parse_transfer_order(std::string_view name) {
  if (name == "ready") return TransferOrder::kReady;
  if (name == "need") return TransferOrder::kNeed;
  constexpr std::string_view kKnown[] = {"ready", "need"};
  throw std::invalid_argument("unknown transfer order " + io::quote(name) +
                              io::before_known(name, kKnown) + "known are ready, need");
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
