#include "job/exhaustion.hpp"

#include <atomic>
#include <catch2/catch.hpp>

#include "io/error.hpp"

using namespace hipress;
using Catch::Matchers::Contains;

TEST_CASE("what has run out is said of the rank, with a remedy") {
  const auto said = [](const auto& work) {
    try {
      job::as_rank(3, work);
    } catch (const job::Exhausted& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto lacks = [&](int error) {
    return said([=] { throw std::system_error(error, std::generic_category()); });
  };
  CHECK_THAT(said([] { throw std::bad_alloc(); }),
             Contains("rank 3 has run out of memory") && Contains("start fewer ranks here"));
  CHECK_THAT(lacks(EAGAIN), Contains("rank 3 cannot start a thread") && Contains("ulimit -u"));
  CHECK_THAT(lacks(EMFILE), Contains("rank 3 cannot open another file") && Contains("ulimit -n"));
  CHECK_THROWS_AS(lacks(EPERM), std::system_error);
  CHECK(job::as_rank(3, [] { return 7; }) == 7);
}

TEST_CASE("threads that run together return what each has thrown") {
  std::atomic<int> calls = 0;
  const auto errors = job::run_together("rank", 5, [&](int number) {
    ++calls;
    if (number == 2) throw std::runtime_error("two");
  });
  REQUIRE(errors.size() == 5);
  CHECK(calls == 5);
  for (int number = 0; number < 5; ++number) CHECK(bool(errors[number]) == (number == 2));
}
