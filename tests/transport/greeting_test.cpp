#include "transport/greeting.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>

namespace hipress::transport {
namespace {

using Message = std::array<std::byte, kClaimBytes>;

const std::string kAddress = "127.0.0.1:4711";
constexpr Claim kClaim{.from = 3, .to = 1, .purpose = 7};

Secret secret_of(char letter) { return Secret(32, static_cast<std::byte>(letter)); }

TEST_CASE("two ends with one secret prove it to each other") {
  const Secret secret = secret_of('s');
  Acceptor acceptor(secret, kAddress);
  Connector connector(secret, kAddress, kClaim);
  const std::optional<Claim> claim = acceptor.verify(connector.claim(acceptor.nonce()));
  REQUIRE(claim.has_value());
  CHECK(*claim == kClaim);
  CHECK(connector.verify(acceptor.answer()));
}

TEST_CASE("a claim is refused whatever bit of it is changed") {
  const Secret secret = secret_of('s');
  Acceptor acceptor(secret, kAddress);
  Connector connector(secret, kAddress, kClaim);
  const Message right = connector.claim(acceptor.nonce());
  for (std::size_t bit = 0; bit < 8 * kClaimBytes; ++bit) {
    Message wrong = right;
    wrong[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    INFO("bit " << bit);
    CHECK_FALSE(acceptor.verify(wrong).has_value());
  }
  CHECK(acceptor.verify(right).has_value());
}

TEST_CASE("who does not know the secret is refused by either end") {
  const Secret secret = secret_of('s'), other = secret_of('t');
  Acceptor acceptor(secret, kAddress);
  Connector stranger(other, kAddress, kClaim);
  CHECK_FALSE(acceptor.verify(stranger.claim(acceptor.nonce())).has_value());

  Acceptor impostor(other, kAddress);
  Connector connector(secret, kAddress, kClaim);
  impostor.verify(connector.claim(impostor.nonce()));
  CHECK_FALSE(connector.verify(impostor.answer()));
}

TEST_CASE("what was said in one greeting is worth nothing in another") {
  const Secret secret = secret_of('s');
  Acceptor first(secret, kAddress), second(secret, kAddress);
  Connector connector(secret, kAddress, kClaim);
  const Message recorded = connector.claim(first.nonce());
  REQUIRE(first.verify(recorded).has_value());
  CHECK_FALSE(second.verify(recorded).has_value());

  Connector next(secret, kAddress, kClaim);
  REQUIRE(second.verify(next.claim(second.nonce())).has_value());
  CHECK_FALSE(next.verify(first.answer()));
}

TEST_CASE("a proof cannot be sent back as the answer to itself") {
  const Secret secret = secret_of('s');
  Acceptor acceptor(secret, kAddress);
  Connector connector(secret, kAddress, kClaim);
  const Message message = connector.claim(acceptor.nonce());
  CHECK_FALSE(connector.verify(std::span(message).last<kAnswerBytes>()));
}

TEST_CASE("a greeting passed on to another rank's port is refused there") {
  const Secret secret = secret_of('s');
  Acceptor acceptor(secret, "127.0.0.1:4712");
  Connector connector(secret, kAddress, kClaim);
  CHECK_FALSE(acceptor.verify(connector.claim(acceptor.nonce())).has_value());
}

TEST_CASE("nonces differ") {
  const Secret secret = secret_of('s');
  CHECK(Acceptor(secret, kAddress).nonce() != Acceptor(secret, kAddress).nonce());
}

}  // namespace
}  // namespace hipress::transport
