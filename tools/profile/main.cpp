// hipress-profile: measures kernels and links, and writes a profile.

#include <CLI/CLI.hpp>
#include <iostream>

#include "requests/profile.hpp"
#include "tools/frame.hpp"
#include "tools/options/fields.hpp"
#include "tools/profile/report.hpp"

namespace {

using namespace hipress;

struct Options {
  Options() { request.output = "profile.yaml"; }

  requests::ProfileRequest request;
  bool json = false;
};

void declare_options(CLI::App& app, Options& options) {
  tools::bind(app, fields(options.request));
  tools::declare_json(app, options.json, "Print one JSON object instead of the table");
}

int run(const Options& options) {
  const requests::Profiled profiled =
      requests::profile(options.request, {.warn = tools::warn, .inform = tools::inform});
  if (!profiled.reports) return 0;
  if (options.json) {
    std::cout << document(profiled).print(2) << '\n';
  } else {
    profiler::print(profiled.profile, options.request.output);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-profile",
      .purpose =
          "Measures compression kernels and links of this machine through the executor, and "
          "writes profile.yaml.",
      .example = "hipress-profile --quick --algorithm onebit,fp16 --output profile.yaml"};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
