#pragma once

#include "requests/simulate.hpp"

namespace CLI {
class App;
}

namespace hipress::sim {

/// The command line of hipress-sim, without its subcommands.
struct CommandLine {
  requests::SimulateRequest request;
  bool json = false;
};

/// Adds the options to the command line.
void declare(CLI::App& app, CommandLine& line);

}  // namespace hipress::sim
