// Tests of ranks that end while all ranks are idle. Each rank is a process. The others must notice
// the loss before the job's timeout, which is longer than ctest's and would give a different error.

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/transport/rank_process.hpp"
#include "transport/endpoint.hpp"

using Catch::Matchers::StartsWith;
using hipress::transport::test::RankProcess;

namespace {

constexpr int kRanks = 3, kVictim = 2;
constexpr double kTimeout_s = 600;

/// Ranks that have averaged once.
class IdleRanks {
 public:
  IdleRanks(const std::string& transport, const std::string& topology) {
    REQUIRE(::mkdtemp(folder_.data()) != nullptr);
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks_.push_back(std::make_unique<RankProcess>(
          HIPRESS_RUNTIME_RANK,
          std::vector<std::string>{std::to_string(rank), std::to_string(kRanks), folder_, transport,
                                   topology, std::to_string(kTimeout_s)}));
    }
    for (const auto& rank : ranks_) rank->tell("average");
    for (const auto& rank : ranks_) REQUIRE(rank->line() == "averaged");
  }
  ~IdleRanks() { std::filesystem::remove_all(folder_); }
  IdleRanks(const IdleRanks&) = delete;
  IdleRanks& operator=(const IdleRanks&) = delete;

  RankProcess& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

 private:
  std::string folder_ = (std::filesystem::temp_directory_path() / "hipress-XXXXXX").string();
  std::vector<std::unique_ptr<RankProcess>> ranks_;
};

void require_left(RankProcess& rank) {
  rank.tell("leave");
  CHECK(rank.line() == "left");
  CHECK(rank.exit_status() == 0);
}

}  // namespace

TEST_CASE("a rank that ends while all are idle is named by what the others submit next", "[slow]") {
  struct End {
    bool killed;
    std::string why;
  };
  const std::string transport = GENERATE("tcp", "gloo");
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  const End end = GENERATE(End{true, "rank 2 closed the connection"}, End{false, "rank 2 left"});
  const auto submitters =
      GENERATE(std::vector<int>{0, 1}, std::vector<int>{0}, std::vector<int>{1});
  CAPTURE(transport, topology, end.why, submitters);
  IdleRanks ranks(transport, topology);
  if (end.killed) {
    ranks[kVictim].signal(SIGKILL);
    CHECK(ranks[kVictim].exit_status() == 128 + SIGKILL);
  } else {
    require_left(ranks[kVictim]);
  }
  for (const int rank : submitters) ranks[rank].tell("average");
  for (const int rank : submitters) {
    CAPTURE(rank);
    CHECK_THAT(ranks[rank].line(), StartsWith("culprit 2: " + end.why));
  }
  for (const int rank : {0, 1}) require_left(ranks[rank]);
}

TEST_CASE("ranks that submit nothing more leave one after the other without an error") {
  const std::string transport = GENERATE("tcp", "gloo");
  const std::string topology = GENERATE("ring", "allreduce");
  CAPTURE(transport, topology);
  IdleRanks ranks(transport, topology);
  for (const int rank : {kVictim, 0, 1}) require_left(ranks[rank]);
}
