#include "requests/hooks.hpp"

#include "io/spelling.hpp"

namespace hipress::requests {

void look_for_interrupt(const Hooks& hooks) {
  if (hooks.interrupted.is_set()) {
    throw Interrupted();
  }
}

void warn(const Hooks& hooks, const std::string& sentence) {
  if (hooks.warn) hooks.warn(sentence);
}

void inform(const Hooks& hooks, const std::string& sentence) {
  if (hooks.inform) hooks.inform(sentence);
}

std::string sentence(const std::string& text) { return io::as_command_line(text); }

}  // namespace hipress::requests
