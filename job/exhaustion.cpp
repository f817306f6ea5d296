#include "job/exhaustion.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

namespace hipress::job {
namespace {

std::string complaint(std::string_view who, int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
      return fmt::format(
          "{} cannot open another file or socket ({}): raise the limit (ulimit -n), or start fewer "
          "ranks in this process",
          who, std::strerror(error));
    case EAGAIN:
      return fmt::format(
          "{} cannot start a thread ({}): raise the limits on threads and on address space (ulimit "
          "-u, ulimit -v, the container's number of processes), or start fewer ranks here",
          who, std::strerror(error));
    default:
      return fmt::format(
          "{} has run out of memory: start fewer ranks here, take a smaller model, or "
          "raise the limit (ulimit -v, the memory of the container or job)",
          who);
  }
}

}  // namespace

Exhausted::Exhausted(std::string_view who, int error) : RunError(complaint(who, error)) {}

bool is_exhaustion(const std::error_code& code) {
  for (const int error : {EAGAIN, ENOMEM, EMFILE, ENFILE}) {
    if (code == std::error_code(error, std::generic_category()) ||
        code == std::error_code(error, std::system_category())) {
      return true;
    }
  }
  return false;
}

std::vector<std::exception_ptr> run_together(std::string_view noun, int count,
                                             const std::function<void(int)>& work) {
  enum class Gate { kClosed, kOpen, kCancelled };
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::atomic<Gate> gate = Gate::kClosed;
  const auto tell = [&gate](Gate state) {
    gate = state;
    gate.notify_all();
  };
  const auto run = [&](int number) {
    gate.wait(Gate::kClosed);
    if (gate != Gate::kOpen) return;
    try {
      work(number);
    } catch (...) {
      errors[static_cast<std::size_t>(number)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    for (int number = 0; number < count; ++number) {
      try {
        threads.emplace_back(run, number);
      } catch (const std::system_error& error) {
        tell(Gate::kCancelled);
        threads.clear();  // joins; frees their stacks, so that there is memory for the message
        throw Exhausted(fmt::format("{} {}", noun, number), error.code().value());
      } catch (const std::bad_alloc&) {
        tell(Gate::kCancelled);
        threads.clear();
        throw Exhausted(fmt::format("{} {}", noun, number), ENOMEM);
      } catch (...) {
        tell(Gate::kCancelled);
        throw;
      }
    }
    tell(Gate::kOpen);
  }
  return errors;
}

}  // namespace hipress::job
