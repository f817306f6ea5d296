#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

/// Catch2's assertions are not for several threads: one that another thread makes may be lost, or
/// fail a test that holds. Such a test ends at once. It throws in its threads, and checks
/// afterwards.
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
