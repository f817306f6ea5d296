#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/transport/rank_process.hpp"
#include "tests/transport/ranks.hpp"

namespace hipress::transport::test {

TEST_CASE("a process that is killed or stopped is named by all others, which exit", "[slow]") {
  struct Case {
    int signal;
    double timeout_s;
    std::string why;
  };
  // A killed rank is noticed at once, whatever the timeout. A stopped one is noticed after
  // silence_s, which transport_rank sets to half of the timeout.
  const Case each = GENERATE(Case{SIGKILL, kGenerous, "rank 2 closed the connection"},
                             Case{SIGSTOP, kShort, "rank 2 was silent for 1 s"});
  const std::vector<std::string> bytes =
      GENERATE(std::vector<std::string>{"100", "4000", "0"},
               std::vector<std::string>{"9000000", "5", "3000000"});
  CAPTURE(each.why, bytes);
  std::string folder = (std::filesystem::temp_directory_path() / "hipress-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  {
    std::vector<std::unique_ptr<RankProcess>> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      std::vector<std::string> arguments{std::to_string(rank), "4", "file://" + folder,
                                         std::to_string(each.timeout_s)};
      arguments.insert(arguments.end(), bytes.begin(), bytes.end());
      ranks.push_back(std::make_unique<RankProcess>(HIPRESS_TRANSPORT_RANK, arguments));
    }
    for (const auto& rank : ranks) REQUIRE(rank->line() == "running");
    ranks[2]->signal(each.signal);
    const auto begin = Clock::now();
    for (const int rank : {0, 1, 3}) {
      CAPTURE(rank);
      RankProcess& survivor = *ranks[static_cast<std::size_t>(rank)];
      CHECK_THAT(survivor.line(), Catch::Matchers::StartsWith("culprit 2: " + each.why));
      CHECK(survivor.exit_status() == 1);
    }
    const double within_s = kMargin + (each.signal == SIGSTOP ? each.timeout_s : 0);
    CHECK(Clock::now() - begin < std::chrono::duration<double>(within_s));
  }
  CHECK(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace hipress::transport::test
