#include "transport/greeting.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

namespace hipress::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "claims are sent as they lie in memory");

/// Protocol identifier; changes with the protocol.
constexpr std::string_view kMagic = "HIPRESS1";
static_assert(kMagic.size() == 8);

constexpr std::size_t kProofAt = kClaimBytes - sizeof(io::Digest);
constexpr std::size_t kNonceAt = kProofAt - kNonceBytes;

Nonce make_nonce() {
  const std::vector<std::byte> random = io::random_bytes(kNonceBytes);
  Nonce nonce;
  std::ranges::copy(random, nonce.begin());
  return nonce;
}

void append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  // No insert(): GCC 12 warns that it may write out of bounds.
  for (const std::byte byte : more) bytes.push_back(byte);
}

/// Bytes that both ends authenticate. All parts but the last have a fixed length, so different
/// greetings give different bytes.
std::vector<std::byte> make_transcript(std::span<const std::byte> nonce,
                                       std::span<const std::byte> claim,
                                       const std::string& address) {
  std::vector<std::byte> transcript;
  append(transcript, nonce);
  append(transcript, claim);
  append(transcript, std::as_bytes(std::span(address)));
  return transcript;
}

/// HMAC of a transcript. The two ends use different labels, so a proof cannot be reflected.
io::Digest prove(const Secret& secret, std::string_view label,
                 std::span<const std::byte> transcript) {
  std::vector<std::byte> signed_bytes;
  append(signed_bytes, std::as_bytes(std::span(label)));
  append(signed_bytes, transcript);
  return io::hmac_sha256(secret, signed_bytes);
}

constexpr std::string_view kClaimLabel = "hipress claim:  ";
constexpr std::string_view kAnswerLabel = "hipress answer: ";

}  // namespace

Acceptor::Acceptor(const Secret& secret, std::string address)
    : secret_(secret), address_(std::move(address)), nonce_(make_nonce()) {}

std::optional<Claim> Acceptor::verify(std::span<const std::byte, kClaimBytes> message) {
  transcript_ = make_transcript(nonce_, message.first<kProofAt>(), address_);
  const io::Digest expected = prove(secret_, kClaimLabel, transcript_);
  if (!io::constant_time_equal(expected, message.subspan<kProofAt>())) return std::nullopt;
  if (std::memcmp(message.data(), kMagic.data(), kMagic.size()) != 0) return std::nullopt;
  Claim claim;
  std::memcpy(&claim, message.data() + kMagic.size(), sizeof claim);
  return claim;
}

io::Digest Acceptor::answer() const { return prove(secret_, kAnswerLabel, transcript_); }

Connector::Connector(const Secret& secret, std::string address, Claim claim)
    : secret_(secret), address_(std::move(address)), claim_(claim), nonce_(make_nonce()) {}

std::array<std::byte, kClaimBytes> Connector::claim(std::span<const std::byte, kNonceBytes> nonce) {
  std::array<std::byte, kClaimBytes> message;
  std::memcpy(message.data(), kMagic.data(), kMagic.size());
  std::memcpy(message.data() + kMagic.size(), &claim_, sizeof claim_);
  std::ranges::copy(nonce_, message.begin() + kNonceAt);
  transcript_ = make_transcript(nonce, std::span(message).first<kProofAt>(), address_);
  std::ranges::copy(prove(secret_, kClaimLabel, transcript_), message.begin() + kProofAt);
  return message;
}

bool Connector::verify(std::span<const std::byte, kAnswerBytes> answer) const {
  return io::constant_time_equal(prove(secret_, kAnswerLabel, transcript_), answer);
}

}  // namespace hipress::transport
