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

/// How far a request is.
struct Progress {
  /// "search", of sweeps "plans" and "simulations", of replays "iterations".
  std::string_view stage;
  double share = 0;                   ///< that is done, from 0 to 1
  std::int64_t done = 0;              ///< of plans, simulations or iterations
  std::int64_t all = 0;               ///< of them; 0 in a search
  std::optional<double> best_s = {};  ///< of a search: the best time so far
};

/// What happens while a request is answered. All may be empty.
struct Hooks {
  /// Sentences for the user: what may mislead, and what was assumed. In a request's own thread, but
  /// for warnings of ranks that are silent, which another gives.
  std::function<void(const std::string& sentence)> warn = {};
  std::function<void(const std::string& sentence)> inform = {};
  /// By one thread at a time, perhaps another than the request's.
  std::function<void(const Progress& progress)> progress = {};
  /// All has been checked, and a search begins that an interrupt ends with the best plan so far.
  std::function<void()> optimises = {};
  std::function<void()> stage_done = {};  ///< after the last progress of a stage
  /// Set from outside, and there until the request is answered. A search that optimises ends with
  /// the best plan so far; everything else with Interrupted, when it next looks.
  io::InterruptFlag interrupted = {};
};

/// The request was interrupted, and there is no result.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

/// Throws Interrupted if the flag is set.
void look_for_interrupt(const Hooks& hooks);

/// The value of `run()`. Of an error after an interrupt, throws Interrupted instead, since errors
/// of ranks that ended say less.
template <class Run>
auto interruptible(const Hooks& hooks, const Run& run) {
  try {
    return run();
  } catch (const std::exception&) {
    look_for_interrupt(hooks);
    throw;
  }
}

/// Calls the hook if there is one.
void warn(const Hooks& hooks, const std::string& sentence);
void inform(const Hooks& hooks, const std::string& sentence);

/// Rewrites a sentence of a library for a result: options get the command line's spelling, so that
/// a result is the same whoever asks. All sentences in results go through here. The sentences of
/// warnings and errors name fields.
std::string sentence(const std::string& text);

/// A request has a field that is unknown, or whose value is none.
class FieldError : public io::InputError {
 public:
  FieldError(std::string its_field, const std::string& message, std::string its_remedy = {})
      : io::InputError(message), field(std::move(its_field)), remedy(std::move(its_remedy)) {}
  std::string field;   ///< its name; empty: of the request as a whole
  std::string remedy;  ///< empty: the message has it
};

/// A requirement was not met; what was found out all the same is the result.
class UnmetWithResult : public io::Unmet {
 public:
  UnmetWithResult(const std::string& message, io::Document its_result)
      : io::Unmet(message), result(std::move(its_result)) {}
  io::Document result;
};

}  // namespace hipress::requests
