// Runs one rank that exchanges messages until the job fails: transport_rank RANK SIZE RENDEZVOUS
// TIMEOUT_S BYTES... Prints "running" after the first iteration. When a rank is lost, prints
// "culprit RANK: message" and exits with 1.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/transport/ranks.hpp"

int main(int argc, char** argv) {
  using namespace hipress::transport;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  JobOptions job;
  job.rank = std::stoi(arguments.at(0));
  job.size = std::stoi(arguments.at(1));
  job.job = "processes";
  job.rendezvous = arguments.at(2);
  job.timeout_s = std::stod(arguments.at(3));
  job.silence_s = job.timeout_s / 2;
  std::vector<std::size_t> bytes;
  for (std::size_t i = 4; i < arguments.size(); ++i) bytes.push_back(std::stoul(arguments[i]));
  try {
    const auto endpoint = find_transport("gloo").connect(job);
    test::Traffic traffic(*endpoint, bytes);
    for (unsigned i = 0;; ++i) {
      traffic.run(i, i);
      if (i == 0) {
        std::puts("running");
        std::fflush(stdout);
      }
    }
  } catch (const PeerError& error) {
    std::printf("culprit %d: %s\n", error.culprit, error.what());
    return 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
