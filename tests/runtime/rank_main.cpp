// Runs one rank with an engine, for tests that end ranks: runtime_rank RANK SIZE FOLDER TRANSPORT
// STRATEGY TIMEOUT_S. Reads one command per line, and answers each with a line:
//   average   submits and waits: "averaged", or "culprit RANK: message"
//   leave     closes the engine and leaves the job: "left"
// It leaves at the end of its input.

#include <fmt/format.h>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace {

using namespace hipress;

std::string average(runtime::Engine& engine) {
  try {
    std::vector<std::vector<float>> values;
    for (const models::Gradient& gradient : engine.compiled().model.gradients) {
      values.emplace_back(static_cast<std::size_t>(gradient.elements), 1.0f);
    }
    std::vector<runtime::Work> works;
    for (std::uint32_t g = 0; g < values.size(); ++g) {
      works.push_back(engine.submit(
          g, {.data = values[g].data(), .elements = static_cast<std::int64_t>(values[g].size())}));
    }
    for (const runtime::Work& work : works) work.wait();
    return "averaged";
  } catch (const transport::PeerError& error) {
    return fmt::format("culprit {}: {}", error.culprit, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const int rank = std::stoi(arguments.at(0)), size = std::stoi(arguments.at(1));
  const double timeout_s = std::stod(arguments.at(5));
  const auto compiled = runtime::compile(
      {{.name = "a", .elements = 1000},
       {.name = "b", .elements = 20},
       {.name = "c", .elements = 1}},
      runtime::PlanChoice{
          .plan = "none", .topology = arguments.at(4), .nodes = static_cast<std::uint32_t>(size)});
  auto endpoint = transport::find_transport(arguments.at(3))
                      .connect({.rank = rank,
                                .size = size,
                                .job = "runtime processes",
                                .plan = compiled->fingerprint,
                                .rendezvous = "file://" + arguments.at(2),
                                .interface = {},
                                .timeout_s = timeout_s});
  std::optional<runtime::Engine> engine;
  engine.emplace(*endpoint, compiled, runtime::EngineOptions{.timeout_s = timeout_s});
  for (std::string command; std::getline(std::cin, command);) {
    if (command == "average") {
      std::cout << average(*engine) << std::endl;
    } else {
      engine.reset();
      endpoint.reset();
      std::cout << "left" << std::endl;
    }
  }
}
