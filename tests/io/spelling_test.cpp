#include "io/spelling.hpp"

#include <catch2/catch.hpp>

using hipress::io::as_command_line;

TEST_CASE("a field in backticks is the long option of its name", "[spelling]") {
  CHECK(as_command_line("`transfer_order` has no effect") == "--transfer-order has no effect");
  CHECK(as_command_line("give `nnodes` 2, or `output` X.yaml") ==
        "give --nnodes 2, or --output X.yaml");
  CHECK(as_command_line("(`p50_s`)") == "(--p50-s)");
}

TEST_CASE("what is no field in backticks stays as it is", "[spelling]") {
  for (const char* sentence :
       {"", "plain -- text", "`", "``", "a ` b", "`Upper`", "`1st`", "`two words`", "`open"}) {
    CHECK(as_command_line(sentence) == sentence);
  }
  CHECK(as_command_line("unknown topology '`seed`'; give `topology`") ==
        "unknown topology '`seed`'; give --topology");
  // The first backtick opens no field, so the second one may.
  CHECK(as_command_line("it's ` and `seed`") == "it's ` and --seed");
}
