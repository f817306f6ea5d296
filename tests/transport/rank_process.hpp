#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace hipress::transport::test {

/// A rank in a process of its own, which the destructor kills if it still runs. This object writes
/// its standard input and reads its standard output.
class RankProcess {
 public:
  RankProcess(const std::string& program, std::vector<std::string> arguments);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void signal(int number);
  /// Writes a line to its input.
  void tell(const std::string& line);
  /// Next line of its output; empty at the end.
  std::string line();
  /// Closes its input and waits for its end. Returns its status, or 128 plus the signal's number.
  int exit_status();

 private:
  pid_t id_ = 0;
  bool waited_ = false;
  std::FILE* input_ = nullptr;
  std::FILE* output_ = nullptr;
};

}  // namespace hipress::transport::test
