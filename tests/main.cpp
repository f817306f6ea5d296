#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

/// Ends a test at once if another thread makes an assertion: Catch2 is not thread-safe, so it may
/// lose the assertion, or fail a correct test. Threads should throw, and the test check afterwards.
class OneThread : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void assertionStarting(const Catch::AssertionInfo& assertion) override {
    if (std::this_thread::get_id() == tests_thread_) return;
    std::fprintf(stderr, "%s:%zu: an assertion outside the test's own thread\n",
                 assertion.lineInfo.file, assertion.lineInfo.line);
    std::abort();
  }

 private:
  std::thread::id tests_thread_ = std::this_thread::get_id();
};

CATCH_REGISTER_LISTENER(OneThread)

}  // namespace
