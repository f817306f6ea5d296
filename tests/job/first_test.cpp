#include "job/first.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "io/error.hpp"
#include "job/connect.hpp"

using namespace hipress;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;

TEST_CASE("all ranks get what rank 0 makes, even if that takes longer than the job's timeout") {
  std::vector<std::string> got(3);
  std::atomic<int> made = 0;
  job::run_thread_ranks("tcp", 3, /*timeout_s=*/0.5, [&](transport::Endpoint& endpoint) {
    got[static_cast<std::size_t>(endpoint.rank())] =
        job::made_by_first(endpoint, [&](io::InterruptFlag) {
          ++made;
          std::this_thread::sleep_for(1500ms);
          return std::string("a plan\0with any bytes", 21);
        });
  });
  CHECK(made == 1);
  CHECK(got == std::vector<std::string>(3, std::string("a plan\0with any bytes", 21)));
}

TEST_CASE("an error of rank 0 is every rank's, of the same kind") {
  const auto said_by_all = [](const auto& fail) {
    std::vector<std::string> said(2);
    job::run_thread_ranks("tcp", 2, 30, [&](transport::Endpoint& endpoint) {
      std::string& mine = said[static_cast<std::size_t>(endpoint.rank())];
      try {
        job::made_by_first(endpoint, [&](io::InterruptFlag) -> std::string {
          fail();
          return {};
        });
      } catch (const io::InputError& error) {
        mine = std::string("input: ") + error.what();
      } catch (const io::RunError& error) {
        mine = std::string("run: ") + error.what();
      }
    });
    CHECK(said[0] == said[1]);
    return said[0];
  };
  CHECK(said_by_all([] { throw io::InputError("x.yaml: no"); }) == "input: x.yaml: no");
  CHECK(said_by_all([] { throw std::invalid_argument("no such"); }) == "input: no such");
  CHECK(said_by_all([] { throw std::runtime_error("the disk is full"); }) ==
        "run: the disk is full");
}

TEST_CASE("an interrupt, and a lost rank, end the work of rank 0 early") {
  const auto until_ended = [](io::InterruptFlag ended) {
    while (!ended.is_set()) std::this_thread::sleep_for(1ms);
    return std::string("the best so far");
  };
  SECTION("an interrupt") {
    std::atomic<bool> interrupted = false;
    std::vector<std::string> got(2);
    job::run_thread_ranks("tcp", 2, 30, [&](transport::Endpoint& endpoint) {
      if (endpoint.rank() == 1) interrupted = true;
      got[static_cast<std::size_t>(endpoint.rank())] =
          job::made_by_first(endpoint, until_ended, &interrupted);
    });
    CHECK(got == std::vector<std::string>(2, "the best so far"));
  }
  SECTION("a lost rank") {
    CHECK_THROWS_WITH(job::run_thread_ranks("tcp", 2, 30,
                                            [&](transport::Endpoint& endpoint) {
                                              if (endpoint.rank() == 1) {
                                                endpoint.abort(1, "rank 1 has had enough");
                                                return;
                                              }
                                              job::made_by_first(endpoint, until_ended);
                                            }),
                      Contains("rank 1 has had enough"));
  }
}
