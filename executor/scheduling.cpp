#include "executor/scheduling.hpp"

#include <pthread.h>
#include <sched.h>

namespace hipress::executor {
namespace {

/// Changes the calling thread's real-time priority; whether that worked.
bool shift_priority(int by) noexcept {
  int policy = SCHED_OTHER;
  sched_param parameters{};
  if (pthread_getschedparam(pthread_self(), &policy, &parameters) != 0) return false;
  // Others interrupt each other anyway, more or less.
  if (policy != SCHED_FIFO && policy != SCHED_RR) return false;
  parameters.sched_priority += by;
  if (parameters.sched_priority < sched_get_priority_min(policy)) return false;
  return pthread_setschedparam(pthread_self(), policy, &parameters) == 0;
}

}  // namespace

GiveWay::GiveWay(bool wanted) noexcept : lowered_(wanted && shift_priority(-1)) {
  // Who lowers itself comes before those who wait at that priority already.
  if (lowered_) sched_yield();
}

GiveWay::~GiveWay() {
  if (lowered_) shift_priority(+1);
}

}  // namespace hipress::executor
