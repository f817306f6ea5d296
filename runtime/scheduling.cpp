#include "runtime/scheduling.hpp"

#include <pthread.h>
#include <sched.h>

namespace hipress::runtime {
namespace {

/// True for real-time policies; threads of other policies preempt each other anyway.
bool is_real_time(int policy) { return policy == SCHED_FIFO || policy == SCHED_RR; }

/// Changes the calling thread's real-time priority; true on success.
bool shift_priority(int by) noexcept {
  int policy = SCHED_OTHER;
  sched_param parameters{};
  if (pthread_getschedparam(pthread_self(), &policy, &parameters) != 0) return false;
  if (!is_real_time(policy)) return false;
  parameters.sched_priority += by;
  if (parameters.sched_priority < sched_get_priority_min(policy)) return false;
  return pthread_setschedparam(pthread_self(), policy, &parameters) == 0;
}

}  // namespace

ScopedYield::ScopedYield(bool wanted) noexcept : lowered_(wanted && shift_priority(-1)) {
  // Yield explicitly, because a lowered thread goes to the head of its new priority's queue.
  if (lowered_) sched_yield();
}

bool ScopedYield::possible() noexcept { return ScopedYield(true).lowered_; }

ScopedYield::~ScopedYield() {
  if (lowered_) shift_priority(+1);
}

Ordinarily::Ordinarily() noexcept {
  if (pthread_getschedparam(pthread_self(), &policy_, &parameters_) != 0) policy_ = SCHED_OTHER;
  const sched_param none{};
  if (is_real_time(policy_)) pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
}

Ordinarily::~Ordinarily() {
  if (is_real_time(policy_)) pthread_setschedparam(pthread_self(), policy_, &parameters_);
}

}  // namespace hipress::runtime
