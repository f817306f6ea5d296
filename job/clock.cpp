#include "job/clock.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "io/host.hpp"
#include "job/gather.hpp"

namespace hipress::job {
namespace {

using std::chrono::nanoseconds;

nanoseconds since_epoch(Clock::time_point at) {
  return std::chrono::duration_cast<nanoseconds>(at.time_since_epoch());
}

}  // namespace

MachineClock machine_clock() {
  return {.boot = io::boot_id(), .now = [] { return Clock::now(); }};
}

CommonClock::CommonClock(transport::Endpoint& endpoint, MachineClock machine)
    : endpoint_(endpoint), machine_(std::move(machine)) {
  const std::vector<std::string> boots = endpoint_.all_gather(machine_.boot);
  const auto is_rank_zeros = [&](const std::string& boot) {
    return !boot.empty() && boot == boots.front();
  };
  if (std::ranges::all_of(boots, is_rank_zeros)) return;
  const nanoseconds estimate = estimate_offset();
  if (!is_rank_zeros(machine_.boot)) offset_ = estimate;
}

nanoseconds CommonClock::estimate_offset() {
  // In every round, the ranks gather the times at which they call gather() (`sent`) and at which
  // the call ends (`ended`). Rank 0 calls late in even rounds, the other ranks in odd ones, so the
  // call ends when the late message has crossed the network. Arrival by one clock minus departure
  // by the other is the crossing's duration, minus the offset from rank 0 or plus the offset to
  // rank 0. The fastest crossings are taken to be equally long in both directions.
  constexpr int kRounds = 16;
  constexpr auto kLate = std::chrono::milliseconds(3);
  const auto rank = static_cast<std::size_t>(endpoint_.rank());
  nanoseconds from_zero = nanoseconds::max(), to_zero = nanoseconds::max();
  for (int round = 0; round < kRounds; ++round) {
    const bool zero_is_late = round % 2 == 0;
    if ((rank == 0) == zero_is_late) std::this_thread::sleep_for(kLate);
    const nanoseconds sent = since_epoch(machine_.now());
    const std::vector<nanoseconds> all_sent = gather(endpoint_, sent);
    const nanoseconds ended = since_epoch(machine_.now());
    const std::vector<nanoseconds> all_ended = gather(endpoint_, ended);
    if (zero_is_late) {
      from_zero = std::min(from_zero, ended - all_sent[0]);
    } else {
      to_zero = std::min(to_zero, all_ended[0] - sent);
    }
  }
  // from_zero = crossing - offset, to_zero = crossing + offset.
  return (to_zero - from_zero) / 2;
}

Clock::time_point CommonClock::agree_on_start() {
  // A rank may return from the gather later than the others, by the duration of the exchange. The
  // margin is generous, since the wait is not measured.
  constexpr nanoseconds kMinMargin = std::chrono::milliseconds(10);
  struct Offer {
    nanoseconds now, margin;
  };
  const nanoseconds before = since_epoch(machine_.now());
  const Offer mine{before + offset_, std::max(kMinMargin, 2 * last_exchange_)};
  nanoseconds latest = nanoseconds::min(), margin{};
  for (const Offer& offer : gather(endpoint_, mine)) {
    latest = std::max(latest, offer.now);
    margin = std::max(margin, offer.margin);
  }
  // Time from the last rank's call to this rank's return, which excludes the wait for late ranks.
  last_exchange_ = std::max(nanoseconds{}, since_epoch(machine_.now()) + offset_ - latest);
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(latest + margin - offset_));
}

}  // namespace hipress::job
