#include "io/digest.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace {

using namespace hipress::io;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST_CASE("SHA-256 gives the values of FIPS 180-2") {
  CHECK(to_hex(sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("SHA-256 of nothing is defined") {
  constexpr auto kOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  CHECK(to_hex(sha256("")) == kOfNothing);
  CHECK(to_hex(sha256(std::span<const std::byte>())) == kOfNothing);
}

TEST_CASE("HMAC-SHA-256 gives the values of RFC 4231") {
  CHECK(to_hex(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string long_key(131, '\xaa');
  CHECK(to_hex(hmac_sha256(bytes_of(long_key),
                           bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("HMAC-SHA-256 takes an empty key and empty data") {
  CHECK(to_hex(hmac_sha256({}, {})) ==
        "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("digests are equal only in size and content") {
  CHECK(constant_time_equal(bytes_of("abc"), bytes_of("abc")));
  CHECK_FALSE(constant_time_equal(bytes_of("abc"), bytes_of("abd")));
  CHECK_FALSE(constant_time_equal(bytes_of("abc"), bytes_of("ab")));
  CHECK(constant_time_equal({}, {}));
}

TEST_CASE("random bytes are as many as asked for, and others each time") {
  CHECK(random_bytes(0).empty());
  // Two calls give equal bytes by chance only once in 2^256.
  CHECK(random_bytes(32) != random_bytes(32));
  CHECK(random_bytes(100000).size() == 100000);
}

}  // namespace
