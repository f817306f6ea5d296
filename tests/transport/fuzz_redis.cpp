// Fuzzes the parser of Redis replies. Any bytes must give replies within bounds, or an error, and
// the same result whether they come at once or in pieces.
//
//   build/fuzz/tests/transport/fuzz_redis -max_total_time=600 -max_len=4096

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "transport/redis_replies.hpp"

namespace {

using hipress::transport::RedisReplies, hipress::transport::RedisReply;

/// Result of parsing some bytes.
struct Outcome {
  std::vector<RedisReply> replies;
  bool refused = false;
};

Outcome read(std::string_view bytes, std::size_t piece) {
  Outcome outcome;
  RedisReplies reader;
  try {
    while (!bytes.empty()) {
      reader.feed(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      while (auto reply = reader.next()) outcome.replies.push_back(std::move(*reply));
    }
  } catch (const std::runtime_error&) {
    outcome.refused = true;
  }
  return outcome;
}

bool same(const RedisReply& a, const RedisReply& b) {
  return a.kind == b.kind && a.text == b.text && a.integer == b.integer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = read(bytes, std::max<std::size_t>(1, bytes.size()));
  const Outcome pieces = read(bytes, std::size_t{1} + data[0] % 32);
  if (whole.refused != pieces.refused) std::abort();
  if (!std::ranges::equal(whole.replies, pieces.replies, same)) std::abort();
  for (const RedisReply& reply : whole.replies) {
    if (reply.text.size() > RedisReplies::kLongestText) std::abort();
  }
  return 0;
}
