#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/transport/ranks.hpp"

extern char** environ;

namespace hipress::transport::test {
namespace {

/// A rank in a process of its own, killed with this object if it still lives.
class RankProcess {
 public:
  explicit RankProcess(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HIPRESS_TRANSPORT_RANK);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    REQUIRE(::posix_spawn(&id_, HIPRESS_TRANSPORT_RANK, &actions, nullptr, argv.data(), environ) ==
            0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~RankProcess() {
    if (!waited_) {
      ::kill(id_, SIGKILL);
      ::waitpid(id_, nullptr, 0);
    }
    std::fclose(output_);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void signal(int number) { REQUIRE(::kill(id_, number) == 0); }

  /// The next line of its output; empty when there is none.
  std::string line() {
    std::string text;
    for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) {
      text += static_cast<char>(c);
    }
    return text;
  }

  int exit_status() {
    int status = 0;
    REQUIRE(::waitpid(id_, &status, 0) == id_);
    waited_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t id_ = 0;
  bool waited_ = false;
  std::FILE* output_ = nullptr;
};

}  // namespace

TEST_CASE("a process that is killed or stopped is named by all others, which exit") {
  struct Case {
    int signal;
    double timeout_s;
    std::string why;
  };
  // A killed one is noticed at once: the timeout must not matter. A stopped one is silent for the
  // timeout.
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
      ranks.push_back(std::make_unique<RankProcess>(arguments));
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
