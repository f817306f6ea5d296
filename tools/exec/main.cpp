// hipress-exec: replays a plan, and prints the measurement beside the prediction.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "requests/headings.hpp"
#include "requests/replay.hpp"
#include "tools/exec/report.hpp"
#include "tools/frame.hpp"
#include "tools/options/fields.hpp"

namespace {

using namespace hipress;

struct Options {
  requests::ReplayRequest request;
  bool json = false;
  bool verbose = false;
};

void declare_options(CLI::App& app, Options& options) {
  tools::bind(app, fields(options.request));
  tools::declare_json(app, options.json);
  app.add_flag("--verbose", options.verbose, "Log every iteration")
      ->group(std::string(requests::headings::kOutput));
}

int run(const Options& options) {
  requests::Hooks hooks = {.warn = tools::warn, .inform = tools::inform};
  if (options.verbose) {
    hooks.progress = [](const requests::Progress& at) {
      tools::inform(fmt::format("iteration {}", at.done));
    };
  }
  const requests::Replayed replayed = requests::replay(options.request, hooks);
  if (!replayed.reports) return 0;
  if (options.json) {
    std::cout << document(replayed).print() << '\n';
  } else {
    replay::print(std::cout, replayed);
  }
  write_trace(options.request, replayed);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-exec",
      .purpose =
          "Synchronises a model's gradients between real ranks by a plan, verifies every value, "
          "and compares measured with predicted times.",
      .example = "hipress-exec --input vgg19 --plan all --topology RING --nnodes 4",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
