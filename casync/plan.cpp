#include "casync/plan.hpp"

#include <algorithm>

namespace hipress::casync {

Slice slice(std::int64_t elements, std::int64_t partitions, std::int64_t k) {
  constexpr std::int64_t kWord = 32;  // codecs pack 32 elements at a time
  const std::int64_t share = (elements + partitions - 1) / partitions;
  const std::int64_t length = (share + kWord - 1) / kWord * kWord;
  const std::int64_t begin = std::min(k * length, elements);
  return {begin, std::min(length, elements - begin)};
}

}  // namespace hipress::casync
