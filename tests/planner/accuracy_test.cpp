#include "planner/problem/accuracy.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/error.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

TEST_CASE("programs without a place are as coarse as the coarsest") {
  const AccuracyOrder order;
  CHECK(order.coarseness("none") == 0);
  CHECK(order.coarseness("tbq(tau=0.1)") == 3);
  CHECK(order.coarseness("tern.pse") == 5);
  CHECK(order.coarseness("tern.pse(b=4)") == 5);
  CHECK(order.is_assumed("tern.pse"));
  CHECK_FALSE(order.is_assumed("dgc"));
  CHECK_THROWS_AS(order.coarseness("onebot"), std::invalid_argument);
}

TEST_CASE("blocks of 8 bits are finer than codes of a slice, and coarser than half precision") {
  const AccuracyOrder order;
  CHECK(order.given_up("bf16") < order.given_up("int8block"));
  CHECK(order.given_up("int8block") == order.given_up("fp8block"));
  CHECK(order.given_up("int8block") < order.given_up("int4block"));
  CHECK(order.given_up("int4block") == order.given_up("terngrad"));
  CHECK(order.given_up("fp4block(format=e2m1)") == order.given_up("int4block"));
}

TEST_CASE("a program's place is that of another algorithm or a number") {
  const AccuracyOrder order = parse_accuracy({"tern.pse=terngrad", "fine.pse(b=8)=1", "onebit=4"});
  CHECK(order.coarseness("tern.pse") == 3);
  // An entry without parameters counts for all parameters.
  CHECK(order.coarseness("tern.pse(b=4)") == 3);
  CHECK(order.coarseness("fine.pse(b=8)") == 1);
  CHECK(order.coarseness("fine.pse") == 5);  // an entry with parameters counts only for these
  CHECK(order.coarseness("onebit") == 4);
  CHECK_FALSE(order.is_assumed("tern.pse"));
  const std::vector<std::string> all = {"tern.pse", "onebit", "fine.pse(b=8)", "fp16"};
  CHECK(order.not_coarser(all, "terngrad") ==
        std::vector<std::string>{"tern.pse", "fine.pse(b=8)", "fp16"});
  CHECK(order.not_coarser(all, "fine.pse(b=8)") ==
        std::vector<std::string>{"fine.pse(b=8)", "fp16"});
}

TEST_CASE("a higher rank is more accurate than a lower one") {
  const AccuracyOrder order;
  CHECK(order.given_up("powersgd(rank=8)") < order.given_up("powersgd(rank=4)"));
  CHECK(order.given_up("acpsgd(rank=4)") == order.given_up("powersgd(rank=4)"));
  CHECK(order.given_up("onebit") < order.given_up("powersgd(rank=8)"));
  CHECK(order.given_up("onebit", 2) < order.given_up("onebit", 8));
  CHECK(order.given_up("int8block", 8) < order.given_up("onebit", 1));
  CHECK(order.given_up("none", 8) == order.given_up("none"));
  CHECK(order.given_up("powersgd(rank=1)") < order.given_up("dgc"));
  const std::vector<std::string> all = {"powersgd(rank=1)", "powersgd(rank=4)", "onebit"};
  CHECK(order.not_coarser(all, "powersgd(rank=2)") ==
        std::vector<std::string>{"powersgd(rank=4)", "onebit"});
  CHECK(order.not_coarser(all, "powersgd") == all);
  CHECK(order.not_coarser(all, "onebit") == std::vector<std::string>{"onebit"});
}

TEST_CASE("a place that is none is refused with what would do") {
  for (const std::string text :
       {"tern.pse", "=2", "tern.pse=6", "tern.pse=0", "tern.pse=none", "tern.pse=onebot"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_accuracy({text}), Contains(fmt::format("`accuracy` '{}'", text)) &&
                                                  Contains("tern.pse=terngrad, tern.pse=2"));
  }
}

}  // namespace
}  // namespace hipress::planner
