// Fuzzes the greeting with peers that do not know the secret: only the right bytes may be accepted.
//
//   build/fuzz/tests/transport/fuzz_greeting -max_total_time=600

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "transport/greeting.hpp"

namespace {

using namespace hipress::transport;

/// Takes kBytes of the fuzzer's bytes, filled up with zeros.
template <std::size_t kBytes>
std::array<std::byte, kBytes> take(const unsigned char*& data, std::size_t& size) {
  std::array<std::byte, kBytes> bytes{};
  const std::size_t count = std::min(size, kBytes);
  std::memcpy(bytes.data(), data, count);
  data += count;
  size -= count;
  return bytes;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const Secret secret(32, std::byte{0x5a});
  const std::string address = "127.0.0.1:4711";
  Acceptor acceptor(secret, address);
  Connector connector(secret, address, {.from = 1, .to = 0, .purpose = 0});

  const auto damage = take<kClaimBytes>(data, size);
  auto claim = connector.claim(acceptor.nonce());
  require(!acceptor.verify(damage).has_value());
  for (std::size_t i = 0; i < claim.size(); ++i) claim[i] ^= damage[i];
  const bool intact = std::ranges::all_of(damage, [](std::byte b) { return b == std::byte{0}; });
  require(acceptor.verify(claim).has_value() == intact);

  const auto answer = take<kAnswerBytes>(data, size);
  require(!connector.verify(answer));
  const auto nonce = take<kNonceBytes>(data, size);
  connector.claim(nonce);
  require(!connector.verify(acceptor.answer()));
  return 0;
}
