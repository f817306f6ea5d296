#include "io/host.hpp"

#include <catch2/catch.hpp>

namespace hipress::io {
namespace {

TEST_CASE("a machine has a name, and a boot id that stays") {
  CHECK_FALSE(host_name().empty());
  // A UUID in text form (RFC 4122).
  CHECK_THAT(boot_id(), Catch::Matchers::Matches("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
  CHECK(boot_id() == boot_id());
}

}  // namespace
}  // namespace hipress::io
