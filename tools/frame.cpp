#include "tools/frame.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/interrupts.hpp"
#include "io/spelling.hpp"
#include "io/suggestion.hpp"
#include "io/utf8.hpp"
#include "io/version.hpp"
#include "requests/headings.hpp"

namespace hipress::tools {
namespace {

// Exit statuses that scripts rely on.
constexpr int kDone = 0;
constexpr int kRunFailed = 1;
constexpr int kRequestWrong = 2;
constexpr int kUnmet = 3;

void log_to_stderr(const std::string& name) {
  const auto mode = io::no_color() ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode);
  auto logger = std::make_shared<spdlog::logger>(name, std::move(sink));
  logger->set_pattern("%n: %^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
}

int complain(const ToolInfo& info, std::string_view message, int status) {
  std::cout.flush();  // so that results precede the message on a terminal
  // Messages may contain unprintable names.
  std::cerr << info.name << ": " << io::printable(io::as_command_line(message), "\n\t")
            << std::endl;
  return status;
}

/// Flushes stdout. The run has failed if the results could not be written, as on a full disk.
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
  } catch (const io::Unmet& error) {
    return complain(info, error.what(), kUnmet);
  } catch (const io::InputError& error) {
    return complain(info, error.what(), kRequestWrong);
  } catch (const std::invalid_argument& error) {
    // Libraries that read no files throw it for an unknown name or an impossible value.
    return complain(info, error.what(), kRequestWrong);
  } catch (const std::exception& error) {
    return complain(info, io::describe(error), kRunFailed);
  }
}

/// Makes flags refuse a value, as in --json=2, unless they stand for a value, as --steady does.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const bool stands_for_one = std::ranges::any_of(
        option->get_lnames(), [&](const std::string& name) { return option->check_fname(name); });
    if (option->get_items_expected_max() == 0 && !stands_for_one) option->disable_flag_override();
  }
}

/// Help formatter that prints groups of options in the order of the headings, and others last.
class Grouped : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           in_order(*app);
  }

 private:
  std::string in_order(const CLI::App& app) const {
    std::vector<std::string> groups = app.get_groups();
    const auto place = [](const std::string& group) {
      return std::ranges::find(requests::headings::kAll, group) - requests::headings::kAll.begin();
    };
    std::ranges::stable_sort(groups, {}, place);
    std::string text;
    for (const std::string& group : groups) {
      const auto options = app.get_options([&](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional();
      });
      if (!options.empty()) text += make_group(group, false, options);
    }
    return text + '\n';
  }
};

/// Message about the first unexpected argument: "unknown option '--nodes'; did you mean
/// '--nnodes'?".
std::string complaint_of_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  const auto first = std::ranges::find_if(
      extras, [](const std::string& extra) { return extra.size() > 1 && extra.starts_with('-'); });
  if (first == extras.end()) {
    return fmt::format("{} was not expected", io::quote(extras.front()));
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string option = first->substr(0, first->find('='));
  return fmt::format(
      "unknown option {}{}", io::quote(option),
      io::question(option, std::vector<std::string_view>(names.begin(), names.end())));
}

/// CLI11's message, reworded for unexpected arguments and for flags with a value. Unexpected
/// arguments take precedence. Long messages are cut in the middle.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  if (app.remaining_size() > 0) return complaint_of_extras(app);
  constexpr std::string_view kOfFlag = " was given a disallowed flag override";
  constexpr std::size_t kShown = 500;  // bytes at each end
  const std::string what = error.what();
  if (what.size() > 2 * kShown) {
    return what.substr(0, kShown) + "…" + what.substr(what.size() - kShown);
  }
  if (!what.ends_with(kOfFlag)) return what;
  const std::string flag = what.substr(0, what.size() - kOfFlag.size());
  return fmt::format("{}{} is a flag, which takes no value: give it alone",
                     flag.size() > 1 ? "--" : "-", flag);
}

/// Declares the options, parses the command line and does the work.
int parse_and_run(int argc, char** argv, const ToolInfo& info,
                  const std::function<void(CLI::App&)>& declare, const std::function<int()>& run) {
  // CLI11 prints the description first, so help opens with the example.
  CLI::App app(fmt::format("Example:\n  {}\n\n{}", info.example, info.purpose), info.name);
  app.set_version_flag("--version", info.name + " " + io::version());
  declare(app);
  refuse_values_of_flags(app);
  const auto formatter = std::make_shared<Grouped>();
  app.formatter(formatter);
  for (CLI::Option* option : {app.get_help_ptr(), app.get_option("--version")}) {
    option->group("Help");
  }
  if (argc <= 1 && info.needs_arguments) {
    std::cerr << formatter->make_description(&app) << formatter->make_usage(&app, info.name)
              << "All options: " << info.name << " --help\n";
    return kRequestWrong;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version) == 0 ? kDone : kRunFailed;
  } catch (const CLI::ParseError& error) {
    throw io::InputError(fmt::format("{} (see {} --help)", complaint(app, error), info.name));
  }
  return run();
}

/// Writes to stderr without allocating memory, since none may be left.
void say(std::string_view text) noexcept {
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

std::array<char, 32> tool_name{};  ///< prefix of messages from on_terminate()

void say_and_end(const char* what, const char* advice = nullptr) noexcept {
  say(tool_name.data());
  say(": ");
  say(what);
  if (advice) {
    say(": ");
    say(advice);
  }
  say("\n");
  io::abandon_work();
  ::_exit(kRunFailed);
}

/// Terminate handler: reports an uncaught exception as a failed run instead of calling abort().
/// Such exceptions occur on threads and in noexcept functions.
[[noreturn]] void on_terminate() noexcept {
  static std::atomic_flag entered;
  while (entered.test_and_set()) ::pause();  // another thread is about to end the process
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    say_and_end(io::remedy(ENOMEM));
  } catch (const std::system_error& error) {
    say_and_end(error.what(), io::remedy(error.code().value()));
  } catch (const std::exception& error) {
    say_and_end(error.what());
  } catch (...) {
  }
  // An exception whose handler was not reached cannot be inspected. The usual cause: a thread could
  // not be started, and those already running were not joined.
  say_and_end("ended by an error that could not be handled",
              "if threads or memory have run out, raise their limits (ulimit -u, ulimit -v), or "
              "try fewer threads or ranks");
  ::_exit(kRunFailed);
}

void handle_terminate(const std::string& name) {
  name.copy(tool_name.data(), tool_name.size() - 1);
  std::set_terminate(on_terminate);
}

}  // namespace

int run_tool(int argc, char** argv, const ToolInfo& info,
             const std::function<void(CLI::App&)>& declare, const std::function<int()>& run) {
  const auto work = [&] {
    handle_terminate(info.name);
    log_to_stderr(info.name);
    io::handle_interrupts();
    // If a file exceeds the size limit (ulimit -f), the write fails instead of ending the process.
    std::signal(SIGXFSZ, SIG_IGN);
    return parse_and_run(argc, argv, info, declare, run);
  };
  return run_and_report(info, work);
}

void inform(const std::string& sentence) { spdlog::info("{}", io::as_command_line(sentence)); }
void warn(const std::string& sentence) { spdlog::warn("{}", io::as_command_line(sentence)); }

}  // namespace hipress::tools
