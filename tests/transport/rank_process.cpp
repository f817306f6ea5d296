#include "tests/transport/rank_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <utility>

extern char** environ;

namespace hipress::transport::test {
namespace {

/// Makes a pipe that other processes do not inherit; otherwise it would outlive this rank.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  return ends;
}

}  // namespace

RankProcess::RankProcess(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::array<int, 2> input = make_pipe(), output = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  REQUIRE(::posix_spawn(&id_, program.c_str(), &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(input[0]);
  ::close(output[1]);
  input_ = ::fdopen(input[1], "w");
  output_ = ::fdopen(output[0], "r");
}

RankProcess::~RankProcess() {
  if (!waited_) {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  if (input_ != nullptr) std::fclose(input_);
  std::fclose(output_);
}

void RankProcess::signal(int number) { REQUIRE(::kill(id_, number) == 0); }

void RankProcess::tell(const std::string& line) {
  REQUIRE(std::fputs((line + "\n").c_str(), input_) >= 0);
  REQUIRE(std::fflush(input_) == 0);
}

std::string RankProcess::line() {
  std::string text;
  for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) {
    text += static_cast<char>(c);
  }
  return text;
}

int RankProcess::exit_status() {
  std::fclose(std::exchange(input_, nullptr));
  int status = 0;
  REQUIRE(::waitpid(id_, &status, 0) == id_);
  waited_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace hipress::transport::test
