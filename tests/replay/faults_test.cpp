// Tests replays with all faults of tests/transport/faulty_wire.hpp, at places drawn from a seed.
// The job must always end. Either every rank verifies, or every rank ends within its timeout with
// an error that names a rank at fault and says what it was doing. Both may happen in one job only
// if its last messages are lost: then some ranks receive all of them and verify, and others fail.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "replay/replay.hpp"
#include "replay/verify.hpp"
#include "tests/runtime/fake_device.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/transport/faulty_wire.hpp"
#include "transport/gloo_wire.hpp"
#include "transport/memory_wire.hpp"
#include "transport/session.hpp"
#include "transport/tcp_wire.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using transport::RecordType;
using transport::test::FaultRow;
using transport::test::Site;

namespace {

/// Timeout that is far longer than anything takes here, even under a sanitizer on a busy machine.
constexpr double kGenerousTimeout_s = 120;
/// Timeout of schedules in which a rank falls silent. A rank counts as dead after half of it,
/// longer than a busy machine keeps a living rank silent.
constexpr double kSilentTimeout_s = 16;
/// Time that a schedule may take beyond its timeout. It needs milliseconds, but several schedules
/// share a machine that may be busy.
constexpr double kMargin_s = 60;
/// Number of schedules that run at a time; they mostly sleep.
constexpr int kWorkers = 8;
constexpr int kIterations = 2;
/// Number of all_gather calls in an iteration, and before the first (common clock or all-reduces).
constexpr std::uint64_t kGathers = 5, kFirstGathers = 1;

/// One fault, and the rank whose puts it hits.
struct Wound {
  const FaultRow* fault;
  int rank;
  Site site;
  std::uint64_t draw;
  std::shared_ptr<std::atomic<bool>> struck = std::make_shared<std::atomic<bool>>(false);

  bool before_last_words() const {
    return site.at != RecordType::kGather && site.at != RecordType::kEnd;
  }
};

/// A job and its faults.
struct Schedule {
  std::uint64_t seed = 0;
  std::string transport, topology, algorithm;
  std::uint32_t nodes = 2;
  std::int32_t partitions = 1;
  double timeout_s = kGenerousTimeout_s;
  bool on_device = false;  ///< on a fake device
  Case job;
  std::vector<Wound> wounds;
};

/// Numbers that depend on the seed alone (splitmix64).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::uint64_t state_;
};

std::uint64_t messages_from(const casync::TaskGraph& graph, int rank) {
  std::uint64_t messages = 0;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Task& task = graph[id];
    messages += task.kind == casync::Kind::kSend && static_cast<int>(task.node) == rank ? 1 : 0;
  }
  return messages;
}

/// Draws a place in the job, mostly among the messages.
Site draw_site(Draws& draws, const Schedule& schedule, int rank) {
  const std::uint64_t peers = schedule.nodes - 1;
  const std::uint64_t messages = kIterations * messages_from(schedule.job.graph, rank);
  const std::uint64_t kind = draws.below(20);
  if (messages > 0 && kind < 9) return {RecordType::kMessage, draws.below(messages)};
  if (messages > 0 && kind < 12) return {std::nullopt, draws.below(messages)};
  if (messages > 0 && kind < 14) return {RecordType::kBegin, draws.below(kIterations)};
  if (kind < 15) return {RecordType::kManifest, draws.below(peers)};
  if (kind < 16) return {RecordType::kHello, draws.below(peers)};
  if (kind < 17) return {RecordType::kEnd, draws.below(peers)};
  return {RecordType::kGather, draws.below((kFirstGathers + kIterations * kGathers) * peers)};
}

Schedule make_schedule(std::uint64_t seed) {
  Draws draws(seed);
  Schedule made;
  made.seed = seed;
  made.transport = draws.one_of<std::string>({"memory", "tcp", "gloo"});
  made.topology = draws.one_of<std::string>({"ps", "ring", "ps", "ring", "allreduce"});
  made.algorithm = made.topology == "allreduce"
                       ? draws.one_of<std::string>({"raw", "fp16"})
                       : draws.one_of<std::string>({"raw", "onebit", "fp16", "dgc"});
  made.nodes = static_cast<std::uint32_t>(2 + draws.below(3));
  made.partitions = static_cast<std::int32_t>(1 + draws.below(made.nodes + 1));
  made.job =
      make_case(made.topology, made.nodes, made.partitions, made.algorithm, {33, 70'000, 1, 5'000});
  const std::uint64_t wounds = 1 + draws.below(2);
  const int first = static_cast<int>(draws.below(made.nodes));
  for (std::uint64_t i = 0; i < wounds; ++i) {
    const int rank = (first + static_cast<int>(i)) % static_cast<int>(made.nodes);
    // The first fault follows from the seed, so consecutive seeds try all faults.
    const std::uint64_t number = i == 0 ? seed : draws.next();
    const FaultRow& fault = transport::test::faults()[number % transport::test::faults().size()];
    made.wounds.push_back({&fault, rank, draw_site(draws, made, rank), draws.next()});
    if (fault.name == "silence") made.timeout_s = kSilentTimeout_s;
  }
  made.on_device = draws.below(3) == 0;
  if (made.on_device && made.algorithm != "raw") {
    made.job.plan.plan.algorithms.front().name = made.algorithm;  // devices look this up
  }
  return made;
}

std::string describe(const Schedule& schedule) {
  std::string text =
      fmt::format("schedule {}: {}, {}, {}, N = {}, K = {}{}", schedule.seed, schedule.transport,
                  schedule.topology, schedule.algorithm, schedule.nodes, schedule.partitions,
                  schedule.on_device ? ", on a device" : "");
  for (const Wound& wound : schedule.wounds) {
    const std::string where = wound.site.at
                                  ? fmt::format("record type {}", static_cast<int>(*wound.site.at))
                                  : std::string("segment");
    text += fmt::format("; {} at rank {}, {} number {}, {}", wound.fault->name, wound.rank, where,
                        wound.site.ordinal, *wound.struck ? "struck" : "never struck");
  }
  return text;
}

/// End of a rank's replay.
struct End {
  enum class Kind { kVerified, kLost, kWrongData, kOther } kind = Kind::kOther;
  int culprit = -1;
  std::string text;
  int begun = 0;  ///< number of iterations begun
};

std::unique_ptr<transport::Wire> make_wire(const Schedule& schedule,
                                           const transport::JobOptions& options) {
  auto wire = schedule.transport == "gloo"  ? transport::make_gloo_wire(options)
              : schedule.transport == "tcp" ? transport::make_tcp_wire(options)
                                            : transport::make_memory_wire(options);
  for (const Wound& wound : schedule.wounds) {
    if (wound.rank != options.rank) continue;
    wire = std::make_unique<transport::test::FaultyWire>(
        std::move(wire), options.size,
        transport::test::make_strike(*wound.fault, wound.site, wound.draw, wound.struck));
  }
  return wire;
}

void run_rank(const Schedule& schedule, int rank, End& end) {
  const std::string name = fmt::format("faults-{}", schedule.seed);
  const transport::JobOptions options{.rank = rank,
                                      .size = static_cast<int>(schedule.nodes),
                                      .job = name,
                                      .plan = {},
                                      .rendezvous = "local:" + name,
                                      .interface = {},
                                      .timeout_s = schedule.timeout_s,
                                      .silence_s = schedule.timeout_s / 2};
  ReplayOptions replayed{.warmup = kIterations - 1,
                         .iterations = 1,
                         .timeout_s = schedule.timeout_s,
                         .progress = [&end](int, int) { ++end.begun; }};
  if (schedule.on_device) {
    const auto seed = static_cast<unsigned>(schedule.seed);
    replayed.device = [seed](int own_rank) {
      return std::make_unique<FakeDevice>(
          FakeDeviceOptions{.seed = 31 * seed + static_cast<unsigned>(own_rank)});
    };
  }
  try {
    const auto endpoint = transport::connect_over(options, make_wire(schedule, options));
    const ReplayResult result = replay::replay(*endpoint, schedule.job.model, schedule.job.plan,
                                               schedule.job.graph, replayed);
    end.kind = result.verified ? End::Kind::kVerified : End::Kind::kOther;
  } catch (const transport::PeerError& error) {
    end.kind = End::Kind::kLost;
    end.culprit = error.culprit;
    end.text = error.what();
  } catch (const VerificationError& error) {
    end.kind = End::Kind::kWrongData;
    end.text = error.what();
  } catch (const std::exception& error) {
    end.text = error.what();
  }
}

std::vector<End> run(const Schedule& schedule) {
  std::vector<End> ends(schedule.nodes);
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    ranks.emplace_back([&, rank] { run_rank(schedule, static_cast<int>(rank), ends[rank]); });
  }
  ranks.clear();  // joins
  return ends;
}

/// Compares the ranks' ends with those that the faults allow.
class Judgement {
 public:
  Judgement(const Schedule& schedule, const std::vector<End>& ends,
            std::chrono::duration<double> took)
      : schedule_(schedule), ends_(ends), took_(took) {
    for (const Wound& wound : schedule.wounds) {
      if (!*wound.struck || wound.fault->harmless) continue;
      culprits_.push_back(wound.rank);
      names_.push_back(wound.fault->name);
      fatal_ = fatal_ || (wound.fault->fatal && wound.before_last_words());
      // A raw value with the wrong sign changes the mean.
      fatal_ = fatal_ || (wound.fault->name == "forge" && schedule.algorithm == "raw");
    }
  }

  /// Description of what is wrong; empty if nothing is.
  std::string complaint() const {
    std::string text;
    const bool all_verified = std::ranges::all_of(ends_, verified);
    const bool any_verified = std::ranges::any_of(ends_, verified);
    if (culprits_.empty() && !all_verified) text += "nothing went wrong; ";
    if (fatal_ && any_verified) text += "verified in spite of it; ";
    if (took_.count() > schedule_.timeout_s + kMargin_s) {
      text += fmt::format("took {} s, its timeout is {} s; ", took_.count(), schedule_.timeout_s);
    }
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
      const std::string wrong = complaint_of(static_cast<int>(rank), any_verified);
      if (!wrong.empty()) text += fmt::format("rank {} {}; ", rank, wrong);
    }
    return text.empty() ? "" : fmt::format("{}\n  {}{}\n", describe(schedule_), text, outcomes());
  }

 private:
  static bool verified(const End& end) { return end.kind == End::Kind::kVerified; }
  bool has(std::string_view fault) const { return std::ranges::count(names_, fault) > 0; }

  std::string complaint_of(int rank, bool others_verified) const {
    const End& end = ends_[static_cast<std::size_t>(rank)];
    if (verified(end)) return {};
    if (others_verified && end.begun < kIterations) return "failed before the last iteration";
    switch (end.kind) {
      case End::Kind::kWrongData:
        return has("forge") && end.text.find("gradient 'g") != std::string::npos
                   ? ""
                   : "found wrong data";
      case End::Kind::kLost:
        return complaint_of_loss(rank, end);
      default:  // a codec may refuse a message that was forged
        return has("forge") ? "" : "ended otherwise";
    }
  }

  std::string complaint_of_loss(int rank, const End& end) const {
    if (end.culprit < 0 || end.culprit >= static_cast<int>(schedule_.nodes)) return "names nobody";
    if (end.text.find(fmt::format("rank {}", end.culprit)) == std::string::npos) {
      return "does not name the culprit in words";
    }
    if (!tells_place(rank, end.text)) return "says neither task nor phase";
    // A rank that is cut off hears nothing from the others, and may blame any of them. A rank that
    // cannot decode a forged message is blamed itself.
    const bool cut_off = has("cut") && std::ranges::count(culprits_, rank) > 0;
    const bool known = std::ranges::count(culprits_, end.culprit) > 0;
    return known || cut_off || has("forge") ? "" : "names an innocent rank";
  }

  /// True if the text names a task that waits for the culprit, or says what the rank was doing.
  static bool tells_place(int rank, const std::string& text) {
    return text.find("'Recv g") != std::string::npos ||
           text.find("'AllReduce g") != std::string::npos ||
           text.find(fmt::format("; rank {} was ", rank)) != std::string::npos;
  }

  std::string outcomes() const {
    std::string text;
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
      const End& end = ends_[rank];
      text += fmt::format("\n    rank {}, {} iterations begun: {}", rank, end.begun,
                          verified(end) ? "verified" : end.text);
    }
    return text;
  }

  const Schedule& schedule_;
  const std::vector<End>& ends_;
  const std::chrono::duration<double> took_;
  std::vector<int> culprits_;            ///< ranks at fault
  std::vector<std::string_view> names_;  ///< and their faults
  bool fatal_ = false;
};

/// Results of many schedules.
struct Tally {
  std::string complaints;
  int verified = 0, failed = 0;
  std::map<std::string_view, int> struck;  ///< number of times, by fault
};

/// Runs the schedules `first` … `first + count` − 1, several at a time. A schedule that hangs ends
/// the test program, with the schedule's description.
class Runner {
 public:
  Runner(std::uint64_t first, std::uint64_t count) : next_(first), end_(first + count) {}

  Tally run_all() {
    std::vector<std::jthread> workers;
    for (int i = 0; i < kWorkers; ++i) workers.emplace_back([this] { work(); });
    watch();
    workers.clear();  // joins
    return tally_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void work() {
    std::unique_lock lock(mutex_);
    while (next_ < end_) {
      const Schedule schedule = make_schedule(next_++);
      const auto begin = Clock::now();
      // A schedule that has not ended after twice its allowed time hangs.
      const std::chrono::duration<double> hangs_after(2 * (schedule.timeout_s + kMargin_s));
      running_[schedule.seed] = begin + std::chrono::duration_cast<Clock::duration>(hangs_after);
      lock.unlock();
      const std::vector<End> ends = run(schedule);
      const std::string complaint = Judgement(schedule, ends, Clock::now() - begin).complaint();
      lock.lock();
      running_.erase(schedule.seed);
      record(schedule, ends, complaint);
    }
    ++idle_;
    changed_.notify_all();
  }

  void record(const Schedule& schedule, const std::vector<End>& ends,
              const std::string& complaint) {
    tally_.complaints += complaint;
    const bool verified =
        std::ranges::all_of(ends, [](const End& end) { return end.kind == End::Kind::kVerified; });
    ++(verified ? tally_.verified : tally_.failed);
    for (const Wound& wound : schedule.wounds) {
      if (*wound.struck) ++tally_.struck[wound.fault->name];
    }
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (
        !changed_.wait_for(lock, std::chrono::seconds(1), [this] { return idle_ == kWorkers; })) {
      for (const auto& [seed, hangs_at] : running_) {
        if (Clock::now() < hangs_at) continue;
        std::fprintf(stderr, "hangs: %s\n", describe(make_schedule(seed)).c_str());
        std::abort();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_;
  const std::uint64_t end_;
  int idle_ = 0;
  std::map<std::uint64_t, Clock::time_point> running_;  ///< by seed: latest time of its end
  Tally tally_;
};

void require_schedules(std::uint64_t first, std::uint64_t count) {
  const Tally tally = Runner(first, count).run_all();
  std::string struck;
  for (const auto& [name, times] : tally.struck) struck += fmt::format(", {} {}", name, times);
  INFO(tally.verified << " verified, " << tally.failed << " failed" << struck);
  CHECK(tally.complaints == "");
  // All faults must have happened, and some jobs must have verified and some failed.
  CHECK(tally.struck.size() == transport::test::faults().size());
  CHECK(tally.verified > 0);
  CHECK(tally.failed > 0);
}

}  // namespace

TEST_CASE("40 seeded fault schedules end verified everywhere or named everywhere", "[slow]") {
  require_schedules(0, 40);
}

TEST_CASE("500 seeded fault schedules end verified everywhere or named everywhere", "[long]") {
  require_schedules(0, 500);
}
