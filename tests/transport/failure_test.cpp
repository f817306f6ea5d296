#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/transport/faulty_wire.hpp"
#include "tests/transport/ranks.hpp"
#include "transport/memory_wire.hpp"
#include "transport/record.hpp"
#include "transport/session.hpp"
#include "transport/wire.hpp"

namespace hipress::transport::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

std::string any_transport() { return GENERATE(as<std::string>(), "memory", "gloo", "tcp"); }

/// Requires that every rank, or every rank but `except`, ended with a PeerError that names
/// `culprit`.
void require_culprit(const std::vector<Outcome>& outcomes, int culprit, int except = -1) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (static_cast<int>(rank) == except) continue;
    INFO("rank " << rank << " of " << outcomes.size() << "\n" << errors(outcomes));
    REQUIRE(outcomes[rank].peer_error);
    CHECK(outcomes[rank].peer_error->culprit == culprit);
  }
}

/// Runs a job over faulty wires: `strikes` has a function per rank that may change its puts.
std::vector<Outcome> run_struck(const JobOptions& job, const std::map<int, Strike>& strikes,
                                const std::function<void(Endpoint&)>& rank_main) {
  return run_ranks(job.size, [&](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    auto wire = make_memory_wire(mine);
    if (strikes.contains(rank)) {
      wire = std::make_unique<FaultyWire>(std::move(wire), job.size, strikes.at(rank));
    }
    const auto endpoint = connect_over(mine, std::move(wire));
    rank_main(*endpoint);
  });
}

bool is_record(const Put& put, RecordType type) {
  const std::optional<Record> record = put.record();
  return record && record->type == type;
}

bool is_message(const Put& put) { return is_record(put, RecordType::kMessage); }

/// Barrier that returns even if a rank ends the job right after it.
void meet(Endpoint& endpoint) {
  endpoint.all_gather("here");
  try {
    endpoint.all_gather("know that all are here");
  } catch (const PeerError&) {
    return;  // the rank that ended the job knew that all were here
  }
}

/// Waits until the job has failed, and throws the error.
[[noreturn]] void wait_for_failure(Endpoint& endpoint) {
  std::promise<PeerError> failed;
  const auto exchange = endpoint.prepare(
      {}, {}, {.arrived = {}, .failed = [&](const PeerError& error) { failed.set_value(error); }});
  throw failed.get_future().get();
}

void run_for_ever(Endpoint& endpoint, const std::vector<std::size_t>& bytes) {
  Traffic traffic(endpoint, bytes);
  for (unsigned i = 0;; ++i) traffic.run(i, i);
}

}  // namespace

TEST_CASE("abort names its culprit on every rank, in every call and event") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  std::atomic<int> events = 0, culprits = 0, later = 0;
  const auto outcomes = run_job(transport, thread_job(4), [&](Endpoint& endpoint) {
    std::vector<std::byte> memory(100'000);
    std::promise<void> failed;
    std::vector<Incoming> incoming;
    if (endpoint.rank() != 3) incoming.push_back({3, 7, memory});
    std::vector<Outgoing> outgoing;
    for (int peer = 0; endpoint.rank() == 3 && peer < 3; ++peer)
      outgoing.push_back({peer, 7, memory});
    const auto exchange =
        endpoint.prepare(outgoing, incoming, {.arrived = {}, .failed = [&](const PeerError& error) {
                                                ++events;
                                                if (error.culprit == 2) ++culprits;
                                                failed.set_value();
                                              }});
    exchange->begin(0);
    meet(endpoint);
    if (endpoint.rank() == 1) endpoint.abort(2, "rank 2 does not verify");
    failed.get_future().wait();
    for (const auto& call : std::initializer_list<std::function<void()>>{
             [&] { endpoint.all_gather(""); }, [&] { exchange->begin(1); },
             [&] { endpoint.prepare({}, {}, {}); }}) {
      try {
        call();
      } catch (const PeerError& error) {
        if (error.culprit == 2) ++later;
      }
    }
    exchange->send(99, 0);
  });
  // The last call has an invalid index, which is reported even after a failure.
  for (const Outcome& outcome : outcomes) CHECK(!outcome.other_error.empty());
  CHECK(events == 4);
  CHECK(culprits == 4);
  CHECK(later == 4 * 3);
}

TEST_CASE("finish and all_gather throw what an abort says, with what was awaited") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, {10, 5'000, 300'000});
    traffic.begin(0);
    meet(endpoint);
    if (endpoint.rank() == 0) traffic.finish();
    if (endpoint.rank() == 1) endpoint.all_gather("");
    endpoint.abort(2, "the cause");
    traffic.finish();
  });
  require_culprit(outcomes, 2);
  CHECK_THAT(outcomes[0].peer_error->what(),
             Contains("the cause (reported by rank ") &&
                 Contains("rank 0 awaits tag 2000 and 2 more from it"));
  CHECK(outcomes[0].peer_error->awaited == std::vector<std::uint32_t>{2000, 2001, 2002});
  CHECK_THAT(outcomes[1].peer_error->what(), Contains("the cause (reported by rank "));
  for (const Outcome& outcome : outcomes) CHECK(outcome.peer_error->loss == Loss::kFault);
  CHECK_THAT(outcomes[2].peer_error->what(), Equals(std::string("the cause")));
}

TEST_CASE("a message that its receiver does not expect names the sender on every rank") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    std::vector<std::byte> memory(10);
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    if (endpoint.rank() == 0) incoming.push_back({1, 7, memory});
    if (endpoint.rank() == 1) outgoing.push_back({0, 8, memory});
    const auto exchange = endpoint.prepare(outgoing, incoming, {});
    endpoint.all_gather("prepared");
    exchange->begin(0);
    endpoint.all_gather("begun");
    exchange->finish();
  });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[2].peer_error->what(),
             Contains("rank 0 does not expect tag 8, rank 1 sends it"));
}

TEST_CASE("a message that is too long for its receiver names the sender on every rank") {
  const std::string transport = any_transport();
  const std::size_t fits = GENERATE(as<std::size_t>(), 10, 5000);  // inline, in a window
  CAPTURE(transport, fits);
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    std::vector<std::byte> source(6000), destination(fits);
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    if (endpoint.rank() == 0) incoming.push_back({2, 7, destination});
    if (endpoint.rank() == 2) outgoing.push_back({0, 7, source});
    const auto exchange = endpoint.prepare(outgoing, incoming, {});
    exchange->begin(0);
    if (endpoint.rank() == 2) exchange->send(0, static_cast<std::int64_t>(fits) + 1);
    endpoint.all_gather("sent");
    exchange->finish();
    endpoint.all_gather("finished");
  });
  require_culprit(outcomes, 2);
  CHECK_THAT(outcomes[1].peer_error->what(),
             Contains(fmt::format("rank 2 has {} bytes for tag 7, of which rank 0 takes {}",
                                  fits + 1, fits)));
}

TEST_CASE("ranks in different iterations end the job") {
  const std::string transport = any_transport();
  const bool posted = GENERATE(false, true);
  CAPTURE(transport, posted);
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, {10});
    traffic.run(0, 0);
    if (posted) traffic.post();
    traffic.run(endpoint.rank() == 0 ? 7 : 8, 0);
  });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[0].peer_error->what(), Contains("iteration 8") && Contains("iteration 7"));
}

TEST_CASE("a byte that changes on the way names the sender on every rank", "[slow]") {
  // The byte lies in a segment in a window of its own, in inline content, or in a record.
  const auto [what, bytes, at] = GENERATE(
      table<std::string, std::size_t, std::size_t>({{"segment", 300'000, 299'999 - 256 * 1024},
                                                    {"content", 100, sizeof(Record) + 99},
                                                    {"record", 100, 60}}));
  CAPTURE(what);
  std::atomic<bool> done = false;
  const auto strike = [&, inside = what == "segment", offset = at](Put& put) {
    const bool wanted = inside ? put.slot != kRingSlot && put.bytes.size() == 300'000 - 256 * 1024
                               : is_message(put);
    if (wanted && !done.exchange(true)) put.bytes[offset] ^= std::byte{1};
  };
  const auto outcomes =
      run_struck(thread_job(3), {{1, strike}},
                 [&, length = bytes](Endpoint& endpoint) { run_for_ever(endpoint, {length}); });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[1].peer_error->what(), Contains(what == "segment"   ? "damaged on the way"
                                                      : what == "content" ? "does not match its CRC"
                                                                          : "a damaged record"));
}

TEST_CASE("a rank that fails before all have heard from it tells those, too, who is to blame") {
  // Rank 0's hello to rank 1 is delayed, and rank 1's hello to rank 0 is damaged: rank 0 detects
  // that before all ranks have heard from it.
  const Strike late = [](Put& put) {
    if (put.peer == 1 && is_record(put, RecordType::kHello))
      put.delay = std::chrono::milliseconds(200);
  };
  const Strike wrong = [](Put& put) {
    if (put.peer == 0 && is_record(put, RecordType::kHello)) put.bytes[60] ^= std::byte{1};
  };
  const auto outcomes = run_struck(thread_job(3), {{0, late}, {1, wrong}},
                                   [](Endpoint& endpoint) { run_for_ever(endpoint, {100}); });
  require_culprit(outcomes, 1);
}

TEST_CASE("a rank that falls silent is named on every other") {
  const auto strike = [silent = false, messages = 0](Put& put) mutable {
    // Rank 1 falls silent in iteration 1, between segment and record (4 records per iteration).
    if (is_message(put) && ++messages == 5) silent = true;
    if (silent) put.copies = 0;
  };
  const auto outcomes = run_struck(thread_job(3, kShort), {{1, strike}},
                                   [&](Endpoint& endpoint) { run_for_ever(endpoint, {300'000}); });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[0].peer_error->what(), Contains("rank 1 was silent for 1 s"));
}

TEST_CASE("a rank that is late because it is silent is named as silent") {
  JobOptions job = thread_job(3, kShort);
  job.silence_s = kGenerous;  // so that the timeout ends the job
  const auto strike = [messages = 0, silent = false](Put& put) mutable {
    if (is_message(put) && ++messages == 5) silent = true;
    if (silent) put.copies = 0;
  };
  const auto outcomes = run_struck(job, {{1, strike}},
                                   [&](Endpoint& endpoint) { run_for_ever(endpoint, {300'000}); });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[0].peer_error->what(), Contains("rank 1 was silent for"));
}

TEST_CASE("a rank that hears of nobody blames itself, and not the first of the others") {
  JobOptions job = thread_job(3);
  job.silence_s = 1;
  const auto strike = [messages = 0, deaf = false](Put& put) mutable {
    if (is_message(put) && ++messages == 5) deaf = true;
    if (deaf && put.peer == 1) put.copies = 0;
  };
  const auto outcomes = run_struck(job, {{0, strike}, {2, strike}},
                                   [&](Endpoint& endpoint) { run_for_ever(endpoint, {300'000}); });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[1].peer_error->what(), Contains("rank 1 has heard of no other rank for 1 s"));
}

TEST_CASE("silence is noted before it is fatal, and so is its end", "[slow]") {
  constexpr double kSilence_s = 6;  // noted after half of it
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> notices;
  const auto await_notice = [&](const std::string& start) {
    std::unique_lock lock(mutex);
    const auto is_it = [&](const std::string& notice) { return notice.starts_with(start); };
    return changed.wait_for(lock, std::chrono::duration<double>(kGenerous),
                            [&] { return std::ranges::any_of(notices, is_it); });
  };
  JobOptions job = thread_job(2);
  job.silence_s = kSilence_s;
  job.notice = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    notices.push_back(sentence);
    changed.notify_all();
  };
  std::atomic<bool> noted = false, is_back = false;
  // Rank 1 sends nothing, not even heartbeats, from its third message until rank 0 has noted that.
  const auto strike = [&, messages = 0](Put& put) mutable {
    if (is_message(put) && ++messages == 3) noted = await_notice("rank 1 has been silent for");
  };
  const auto outcomes = run_struck(job, {{1, strike}}, [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, {10});
    for (unsigned i = 0; i < 5; ++i) traffic.run(i, i);
    if (endpoint.rank() == 0) is_back = await_notice("rank 1 is back, after");
    endpoint.all_gather("done");
  });
  CHECK(errors(outcomes) == "");
  CHECK(noted);
  CHECK(is_back);
}

TEST_CASE("a rank that lives but does not send is named when the timeout has passed", "[slow]") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_job(transport, thread_job(3, kShort), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, {10});
    traffic.begin(0);
    for (std::size_t index = 0; index < traffic.messages(); ++index) {
      if (endpoint.rank() != 1) traffic.send(index);
    }
    traffic.finish();
    wait_for_failure(endpoint);  // rank 1 has received everything, so finish() does not fail there
  });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[0].peer_error->what(),
             Contains("rank 1 sent nothing for 2 s in iteration 0"));
}

TEST_CASE("a rank that does not come to an all_gather is named when the timeout has passed",
          "[slow]") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_job(transport, thread_job(3, kShort), [&](Endpoint& endpoint) {
    if (endpoint.rank() != 1) endpoint.all_gather("here");
    wait_for_failure(endpoint);
  });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[0].peer_error->what(), Contains("rank 1 did not take part in an all_gather"));
}

TEST_CASE("an exchange that is given up in an iteration ends the job for all", "[slow]") {
  const std::string transport = any_transport();
  const std::size_t sent = GENERATE(as<std::size_t>(), 0, 1, 4);  // of 6 messages
  CAPTURE(transport, sent);
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    auto traffic =
        std::make_unique<Traffic>(endpoint, std::vector<std::size_t>{4'000'000, 10, 5'000});
    traffic->run(0, 1);
    traffic->begin(1);
    for (std::size_t index = 0; index < (endpoint.rank() == 1 ? sent : 6); ++index)
      traffic->send(index);
    if (endpoint.rank() == 1) traffic.reset();
    if (traffic) traffic->finish();
    endpoint.all_gather("rank 1 comes here");
  });
  require_culprit(outcomes, 1);
  CHECK_THAT(outcomes[2].peer_error->what(), Contains("rank 1 gave up in iteration 1"));
}

TEST_CASE("a rank that posted receives, and leaves, is named by who goes on, and gets nothing more",
          "[slow]") {
  // Rank 1 leaves before rank 0 begins, after rank 0 has sent a message, or waits for neither.
  const std::string transport = any_transport();
  const std::string leaves = GENERATE(as<std::string>(), "the exchange", "the job");
  const std::string when = GENERATE(as<std::string>(), "before", "meanwhile", "after");
  CAPTURE(transport, leaves, when);
  const auto outcomes = run_ranks(2, [&, job = thread_job(2)](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    auto endpoint = find_transport(transport).connect(mine);
    auto traffic = std::make_unique<Traffic>(*endpoint, std::vector<std::size_t>{4'000'000, 10});
    traffic->run(0, 0);
    traffic->post();
    meet(*endpoint);
    const auto leave = [&] {
      if (leaves == "the job") endpoint.reset();
      traffic.reset();
    };
    const auto tell = [&] {
      if (endpoint) endpoint->all_gather("done");
    };
    if (rank == 1) {
      if (when == "after") tell();
      leave();
      if (when == "before") tell();
      return;
    }
    if (when == "before" && leaves == "the exchange") tell();
    traffic->begin(1);
    traffic->send(0);
    if (when == "after") tell();
    traffic->send(1);
    traffic->finish();
  });
  REQUIRE(outcomes[0].peer_error);
  CHECK(outcomes[0].peer_error->culprit == 1);
  CHECK_THAT(outcomes[0].peer_error->what(), Contains("rank 1 left"));
  CHECK(outcomes[0].peer_error->loss == Loss::kLeft);
}

TEST_CASE("an endpoint may go in any state, and the others hear of it", "[slow]") {
  const std::string transport = any_transport();
  const std::string when =
      GENERATE(as<std::string>(), "connected", "prepared", "begun", "sent", "finished", "failed");
  CAPTURE(transport, when);
  const auto outcomes = run_ranks(3, [&, job = thread_job(3)](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    auto endpoint = find_transport(transport).connect(mine);
    std::unique_ptr<Traffic> traffic;
    const auto goes = [&](const char* state) {
      if (rank == 1 && when == state) endpoint.reset();  // destroyed before its exchange
      return !endpoint;
    };
    if (goes("connected")) return;
    traffic = std::make_unique<Traffic>(*endpoint, std::vector<std::size_t>{4'000'000, 10, 5'000});
    if (goes("prepared")) return;
    traffic->begin(0);
    if (goes("begun")) return;
    for (std::size_t index = 0; index < traffic->messages(); ++index) traffic->send(index);
    if (goes("sent")) return;
    traffic->finish();
    if (goes("finished")) return;
    if (rank == 1) endpoint->abort(1, "enough");
    if (goes("failed")) return;
    endpoint->all_gather("rank 1 is not here");
  });
  require_culprit(outcomes, 1, 1);
  CHECK(errors({outcomes[1]}) == "");
}

TEST_CASE("an exchange that outlives its endpoint says so") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_ranks(2, [&, job = thread_job(2)](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    auto endpoint = find_transport(transport).connect(mine);
    Traffic traffic(*endpoint, {10});
    traffic.run(0, 0);
    endpoint.reset();
    traffic.exchange().begin(1);
  });
  CHECK_THAT(outcomes[0].peer_error->what(), Contains("rank 0 has left the job"));
  CHECK_THAT(outcomes[1].peer_error->what(), Contains("rank 1 has left the job"));
}

TEST_CASE("ranks that leave at different times leave in good order") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  // Rank 2 leaves only after the other ranks have gone.
  std::atomic<int> gone = 0;
  const auto outcomes = run_ranks(3, [&, job = thread_job(3)](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    auto endpoint = find_transport(transport).connect(mine);
    {
      Traffic traffic(*endpoint, {5'000'000, 3});
      traffic.run(0, 0);
      endpoint->all_gather(std::string(500'000, 'x'));
      while (rank == 2 && gone < 2) std::this_thread::yield();
    }
    endpoint.reset();
    ++gone;
  });
  CHECK(errors(outcomes) == "");
}

}  // namespace hipress::transport::test
