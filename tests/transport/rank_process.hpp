#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace hipress::transport::test {

/// A rank in a process of its own, killed with this object if it still lives. Its standard input
/// and output are this object's to write and read.
class RankProcess {
 public:
  RankProcess(const std::string& program, std::vector<std::string> arguments);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void signal(int number);
  /// Writes a line to its input.
  void tell(const std::string& line);
  /// The next line of its output; empty when there is none.
  std::string line();
  /// Ends its input, and waits until it has ended: its status, or 128 and the signal's number.
  int exit_status();

 private:
  pid_t id_ = 0;
  bool waited_ = false;
  std::FILE* input_ = nullptr;
  std::FILE* output_ = nullptr;
};

}  // namespace hipress::transport::test
