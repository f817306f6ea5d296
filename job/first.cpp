#include "job/first.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <stdexcept>

#include "io/error.hpp"

namespace hipress::job {
namespace {

/// Time between two rounds of signs of life.
constexpr std::chrono::milliseconds kLook{20};
/// First byte of a message, before the text or the error's message.
constexpr char kMade = 'm', kInvalid = 'i', kFailed = 'f';

/// Message that holds the result.
std::string message_of(std::future<std::string>& making) {
  try {
    return kMade + making.get();
  } catch (const io::InputError& error) {
    return kInvalid + std::string(error.what());
  } catch (const std::invalid_argument& error) {
    return kInvalid + std::string(error.what());
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  }
}

/// Work of rank 0 on a thread of its own, which the destructor ends early and waits for.
class Making {
 public:
  explicit Making(const std::function<std::string(io::InterruptFlag ended)>& make)
      : made_(std::async(std::launch::async, [this, &make] { return make(&ended_); })) {}
  ~Making() { end(); }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  void end() { ended_ = true; }
  /// Message for the other ranks; empty while the work goes on.
  std::string look() {
    return made_.wait_for(kLook) == std::future_status::ready ? message_of(made_) : std::string();
  }

 private:
  std::atomic<bool> ended_ = false;
  std::future<std::string> made_;  // its destructor waits
};

}  // namespace

std::string made_by_first(transport::Endpoint& endpoint,
                          const std::function<std::string(io::InterruptFlag ended)>& make,
                          io::InterruptFlag interrupted) {
  std::optional<Making> making;
  if (endpoint.rank() == 0) making.emplace(make);
  while (true) {
    if (making && interrupted.is_set()) making->end();
    const std::string said = endpoint.all_gather(making ? making->look() : std::string()).front();
    if (said.empty()) continue;
    const std::string text = said.substr(1);
    if (said.front() == kMade) return text;
    if (said.front() == kInvalid) throw io::InputError(text);
    throw io::RunError(text);
  }
}

}  // namespace hipress::job
