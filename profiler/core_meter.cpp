#include "profiler/core_meter.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "runtime/scheduling.hpp"

namespace hipress::profiler {
namespace {

/// Binds the calling thread to a core if the system allows it.
void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

CoreMeter::CoreMeter(const std::vector<int>& cores, Leaves leaves) : leaves_(leaves) {
  try {
    for (const int core : cores) {
      Counter& counter = *counters_.emplace_back(std::make_unique<Counter>());
      counter.thread = std::thread([this, &counter, core] {
        stay_on(core);
        count(counter);
      });
    }
    calibrate();
  } catch (...) {
    stop();  // the destructor will not run
    throw;
  }
}

CoreMeter::~CoreMeter() { stop(); }

void CoreMeter::resume() noexcept {
  counting_ = true;
  counting_.notify_all();
}

void CoreMeter::stop() noexcept {
  stopping_ = true;
  resume();
  for (const auto& counter : counters_) {
    if (counter->thread.joinable()) counter->thread.join();
  }
}

void CoreMeter::count(Counter& counter) const {
  while (!stopping_) {
    counting_.wait(false);
    count_for_a_while(counter);
  }
}

/// Counts until the meter pauses or stops. Computes in registers, so memory and caches do not
/// matter.
void CoreMeter::count_for_a_while(Counter& counter) const {
  constexpr int kSteps = 256;
  std::uint64_t state = 1;
  const runtime::ScopedYield scoped_yield(leaves_ == Leaves::kForEveryMessage);
  Clock::time_point turn_ends = Clock::now() + runtime::kTurn;
  while (counting_.load(std::memory_order_relaxed) && !stopping_.load(std::memory_order_relaxed)) {
    if (Clock::now() > turn_ends) {
      std::this_thread::yield();
      turn_ends = Clock::now() + runtime::kTurn;
    }
    for (int step = 0; step < kSteps; ++step) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
    }
    // The state is never 0, which the compiler cannot know.
    counter.value.fetch_add(state != 0 ? 1 : 0, std::memory_order_relaxed);
  }
}

/// Measures the counts per second without other load: the median of several windows.
void CoreMeter::calibrate() {
  constexpr int kWindows = 11;
  constexpr auto kWindow = std::chrono::milliseconds(20);
  std::vector<std::vector<double>> rates(counters_.size());
  for (int window = 0; window < kWindows; ++window) {
    std::vector<std::uint64_t> before;
    const Clock::time_point start = Clock::now();
    for (const auto& counter : counters_) before.push_back(counter->value);
    std::this_thread::sleep_for(kWindow);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (std::size_t i = 0; i < counters_.size(); ++i)
      rates[i].push_back(static_cast<double>(counters_[i]->value - before[i]) / seconds);
  }
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    std::ranges::nth_element(rates[i], rates[i].begin() + kWindows / 2);
    counters_[i]->per_second = std::max(1.0, rates[i][kWindows / 2]);
    counters_[i]->value = 0;
  }
  since_ = Clock::now();
}

double CoreMeter::used_s() const {
  double spent_s = 0;
  for (const auto& counter : counters_)
    spent_s += static_cast<double>(counter->value) / counter->per_second;
  const double elapsed_s = std::chrono::duration<double>(Clock::now() - since_).count();
  return static_cast<double>(counters_.size()) * elapsed_s - spent_s;
}

}  // namespace hipress::profiler
