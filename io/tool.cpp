#include "io/tool.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/interrupts.hpp"

namespace hipress::io {
namespace {

// Exit statuses that scripts rely on.
constexpr int kDone = 0;
constexpr int kRunFailed = 1;
constexpr int kRequestWrong = 2;
constexpr int kUnmet = 3;

void log_to_stderr(const std::string& name) {
  const auto mode = no_color() ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode);
  auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
  logger->set_pattern("%n: %^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
}

int complain(const ToolInfo& info, std::string_view message, int status) {
  std::cout.flush();  // results before the complaint where both go to one terminal
  std::cerr << info.name << ": " << message << std::endl;
  return status;
}

/// Results that did not arrive (a full disk) are a failed run.
int finish(const ToolInfo& info, int status) {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0) {
    return complain(info, "the results could not be written to standard output", kRunFailed);
  }
  return status;
}

int run_and_report(const ToolInfo& info, const std::function<int()>& run) {
  try {
    return finish(info, run());
  } catch (const Unmet& error) {
    return complain(info, error.what(), kUnmet);
  } catch (const InputError& error) {
    return complain(info, error.what(), kRequestWrong);
  } catch (const std::invalid_argument& error) {
    // How libraries that read no files refuse an unknown name or an impossible value.
    return complain(info, error.what(), kRequestWrong);
  } catch (const std::bad_alloc&) {
    return complain(info, "out of memory: try fewer nodes, partitions or gradients", kRunFailed);
  } catch (const std::exception& error) {
    return complain(info, error.what(), kRunFailed);
  }
}

}  // namespace

int run_tool(int argc, char** argv, const ToolInfo& info,
             const std::function<void(CLI::App&)>& declare, const std::function<int()>& run) {
  log_to_stderr(info.name);
  handle_interrupts();
  // CLI11 prints the description first, so help opens with the example.
  CLI::App app(fmt::format("Example:\n  {}\n\n{}", info.example, info.purpose), info.name);
  app.set_version_flag("--version", info.name + " " + version());
  declare(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return finish(info, app.exit(help_or_version) == 0 ? kDone : kRunFailed);
  } catch (const CLI::ParseError& error) {
    return complain(info, fmt::format("{} (see {} --help)", error.what(), info.name),
                    kRequestWrong);
  } catch (const InputError& error) {  // an option's own validator
    return complain(info, error.what(), kRequestWrong);
  }
  return run_and_report(info, run);
}

CLI::Validator number_from(double least, double most) {
  const auto check = [least, most](const std::string& text) {
    double value = 0;
    // What is not a number compares as false.
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) {
      return std::string();
    }
    return fmt::format("must be a number from {} to {}, got '{}'", least, most, text);
  };
  return CLI::Validator(check, fmt::format("[{} - {}]", least, most));
}

}  // namespace hipress::io
