#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "io/document.hpp"
#include "io/error.hpp"
#include "io/interrupt_flag.hpp"

namespace hipress::requests {

/// Progress of a request.
struct Progress {
  /// Name of the stage: "search"; "plans" and "simulations" for sweeps; "iterations" for replays.
  std::string_view stage;
  double share = 0;                   ///< completed share, from 0 to 1
  std::int64_t done = 0;              ///< plans, simulations or iterations so far
  std::int64_t all = 0;               ///< their total; 0 in a search
  std::optional<double> best_s = {};  ///< best time so far, in a search
};

/// Callbacks while a request is answered. All may be empty.
struct Hooks {
  /// Warnings and notes for the user, on the request's own thread. Warnings about silent ranks come
  /// from another thread.
  std::function<void(const std::string& sentence)> warn = {};
  std::function<void(const std::string& sentence)> inform = {};
  /// Called by one thread at a time, which may differ from the request's.
  std::function<void(const Progress& progress)> progress = {};
  /// Called after all checks, before a search that an interrupt ends with the best plan so far.
  std::function<void()> optimises = {};
  std::function<void()> stage_done = {};  ///< called after the last progress of a stage
  /// Set from outside; must stay valid until the request is answered. A search that optimises then
  /// ends with the best plan so far. Everything else throws Interrupted at the next check.
  io::InterruptFlag interrupted = {};
};

/// Thrown if an interrupt left the request without a result.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

/// Throws Interrupted if the flag is set.
void look_for_interrupt(const Hooks& hooks);

/// Returns `run()`. Errors after an interrupt become Interrupted, which tells more than errors of
/// ranks that ended.
template <class Run>
auto interruptible(const Hooks& hooks, const Run& run) {
  try {
    return run();
  } catch (const std::exception&) {
    look_for_interrupt(hooks);
    throw;
  }
}

/// Calls the hook unless it is empty.
void warn(const Hooks& hooks, const std::string& sentence);
void inform(const Hooks& hooks, const std::string& sentence);

/// Rewrites a library's sentence for a result: options get the command line's spelling, so that the
/// result does not depend on the caller. All sentences in results pass through here. Warnings and
/// errors name fields instead.
std::string sentence(const std::string& text);

/// Unknown field of a request, or an invalid value of one.
class FieldError : public io::InputError {
 public:
  FieldError(std::string its_field, const std::string& message, std::string its_remedy = {})
      : io::InputError(message), field(std::move(its_field)), remedy(std::move(its_remedy)) {}
  std::string field;   ///< name; empty: the request as a whole
  std::string remedy;  ///< empty: included in the message
};

/// Requirement that was not met. `result` holds the result found anyway.
class UnmetWithResult : public io::Unmet {
 public:
  UnmetWithResult(const std::string& message, io::Document its_result)
      : io::Unmet(message), result(std::move(its_result)) {}
  io::Document result;
};

}  // namespace hipress::requests
