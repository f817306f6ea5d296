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

struct Progress {
  /// Name of the stage: "search"; "plans" or "simulations" in a sweep; "iterations" in a replay.
  std::string_view stage;
  double share = 0;                   ///< completed share, from 0 to 1
  std::int64_t done = 0;              ///< number of plans, simulations or iterations so far
  std::int64_t all = 0;               ///< their total; 0 in a search
  std::optional<double> best_s = {};  ///< best time so far, in a search
};

/// Callbacks for use while a request is answered. Each may be empty.
struct Hooks {
  /// Called with warnings and notes for the user, on the request's own thread. Warnings about
  /// silent ranks come from another thread.
  std::function<void(const std::string& sentence)> warn = {};
  std::function<void(const std::string& sentence)> inform = {};
  /// Called by one thread at a time, not always the request's.
  std::function<void(const Progress& progress)> progress = {};
  /// Called after all checks, before a search that can be interrupted: the interrupt ends it with
  /// the best plan so far.
  std::function<void()> optimises = {};
  std::function<void()> stage_done = {};  ///< called after the last progress report of a stage
  /// Flag that the caller may set to interrupt the request; it must stay valid until the request is
  /// answered. A search that optimises then ends with the best plan so far. Other work throws
  /// Interrupted at its next check.
  io::InterruptFlag interrupted = {};
};

/// Thrown if an interrupt ended the request without a result.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

/// Throws Interrupted if the flag is set.
void look_for_interrupt(const Hooks& hooks);

/// Returns `run()`. Turns any error after an interrupt into Interrupted: errors about ranks that
/// ended would hide the cause.
template <class Run>
auto interruptible(const Hooks& hooks, const Run& run) {
  try {
    return run();
  } catch (const std::exception&) {
    look_for_interrupt(hooks);
    throw;
  }
}

void warn(const Hooks& hooks, const std::string& sentence);
void inform(const Hooks& hooks, const std::string& sentence);

/// Rewrites a library's sentence for a result: fields get the spelling of command-line options, so
/// that the result does not depend on the caller. All sentences in results pass through here.
/// Warnings and errors keep the fields' names.
std::string sentence(const std::string& text);

/// Error about an unknown field of a request, or an invalid value of a field.
class FieldError : public io::InputError {
 public:
  FieldError(std::string its_field, const std::string& message, std::string its_remedy = {})
      : io::InputError(message), field(std::move(its_field)), remedy(std::move(its_remedy)) {}
  std::string field;   ///< name of the field; empty: the request as a whole
  std::string remedy;  ///< empty: included in the message
};

/// A requirement was not met. `result` holds the result found anyway.
class UnmetWithResult : public io::Unmet {
 public:
  UnmetWithResult(const std::string& message, io::Document its_result)
      : io::Unmet(message), result(std::move(its_result)) {}
  io::Document result;
};

}  // namespace hipress::requests
