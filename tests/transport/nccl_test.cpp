// Tests the states, deadlines and aborts of the communicator with a scripted NCCL.

#include "transport/nccl.hpp"

#include <dlfcn.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <mutex>

#include "io/error.hpp"
#include "tests/transport/ranks.hpp"

using namespace hipress::transport;
using namespace hipress::transport::test;
using Catch::Matchers::Contains;

namespace {

/// Status that a rank's NCCL reports from its group number `at` on (0: while it connects).
struct Fault {
  int rank = -1;
  int at = 0;
  NcclStatus status = {};  ///< kBusy: it never ends
};

class ScriptedNccl : public NcclLibrary {
 public:
  explicit ScriptedNccl(const Fault& fault = {}) : fault_(fault) {}
  int version() const override { return 22809; }
  std::string new_id() override {
    ++ids;
    return std::string(128, '\1');
  }
  std::unique_ptr<NcclLink> join(const std::string& id, int rank, int) override {
    {
      const std::lock_guard lock(mutex_);
      joined_with.push_back(id);
    }
    return std::make_unique<Link>(*this, rank);
  }

  std::atomic<int> ids = 0, aborts = 0, finishes = 0, issued_while_busy = 0;
  std::vector<std::string> joined_with;

 private:
  class Link : public NcclLink {
   public:
    Link(ScriptedNccl& nccl, int rank) : nccl_(nccl), rank_(rank) {}
    NcclStatus status() override {
      if (nccl_.fault_.rank == rank_ && groups_ >= nccl_.fault_.at) return nccl_.fault_.status;
      if (busy_ == 0) return {};
      --busy_;
      return {NcclState::kBusy, {}};
    }
    NcclStatus issue(std::span<const NcclOperation>, void*) override {
      if (busy_ > 0) ++nccl_.issued_while_busy;
      ++groups_;
      busy_ = 4;
      return status();
    }
    NcclStatus finish() override {
      ++nccl_.finishes;
      busy_ = 2;
      return {NcclState::kBusy, {}};
    }
    void abort() noexcept override { ++nccl_.aborts; }

   private:
    ScriptedNccl& nccl_;
    int rank_, groups_ = 0, busy_ = 5;
  };

  Fault fault_;
  std::mutex mutex_;
};

NcclOperation receive(int peer, std::uint32_t tag) {
  return {.kind = NcclOperation::Kind::kReceive, .peer = peer, .tag = tag, .bytes = 4};
}

/// Behaviour of run_three()'s ranks after issuing: leave, or check NCCL until the job fails.
enum class Stay : std::uint8_t { kLeave, kUntilFailure };

std::vector<Outcome> run_three(ScriptedNccl& nccl, Stay stay, double timeout_s = kGenerous) {
  return run_job("memory", thread_job(3, timeout_s), [&](Endpoint& endpoint) {
    NcclCommunicator communicator(endpoint, nccl, timeout_s);
    const std::vector<NcclOperation> group{receive((endpoint.rank() + 2) % 3, 7)};
    communicator.issue(group, nullptr);
    communicator.issue(group, nullptr);
    while (stay == Stay::kUntilFailure) communicator.check(group);
    // No rank leaves before all have issued their groups.
    endpoint.all_gather("done");
  });
}

void require_culprit(const std::vector<Outcome>& outcomes, int culprit, const std::string& text) {
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.other_error);
    REQUIRE(outcome.peer_error);
    CHECK(outcome.peer_error->culprit == culprit);
    CHECK_THAT(outcome.peer_error->what(), Contains(text));
  }
}

}  // namespace

TEST_CASE("all ranks join with rank 0's id, and leave in good order") {
  ScriptedNccl nccl;
  CHECK(errors(run_three(nccl, Stay::kLeave)).empty());
  CHECK(nccl.ids == 1);
  CHECK(nccl.joined_with == std::vector<std::string>(3, std::string(128, '\1')));
  CHECK(nccl.finishes == 3);
  CHECK(nccl.aborts == 0);
  CHECK(nccl.issued_while_busy == 0);
}

TEST_CASE("an error of one rank's NCCL ends the job on all, which abort", "[slow]") {
  for (const int at : {0, 1, 2}) {
    ScriptedNccl nccl({.rank = 1, .at = at, .status = {NcclState::kFailed, "out of pencils"}});
    require_culprit(run_three(nccl, Stay::kUntilFailure), 1, "NCCL on rank 1: out of pencils");
    CHECK(nccl.aborts >= 3);
    CHECK(nccl.finishes == 0);
  }
}

TEST_CASE("an error that NCCL blames on others names the rank whose message is awaited") {
  ScriptedNccl nccl({.rank = 1, .at = 2, .status = {NcclState::kFailed, "remote error", true}});
  const auto outcomes = run_three(nccl, Stay::kUntilFailure, 4);
  require_culprit(outcomes, 0, "NCCL on rank 1: remote error");
  CHECK(outcomes[1].peer_error->awaited == std::vector<std::uint32_t>{7});
}

TEST_CASE("a rank on which NCCL connects for ever ends the job within the timeout", "[slow]") {
  ScriptedNccl nccl({.rank = 2, .at = 0, .status = {NcclState::kBusy, {}}});
  const auto outcomes = run_three(nccl, Stay::kUntilFailure, kShort);
  require_culprit(outcomes, 2,
                  "NCCL has connected no ranks for 2 s; rank 2 was the first to give up");
  // The rank that gives up first need not be at fault.
  require_culprit(outcomes, 2, "no rank is known to be at fault: NCCL_DEBUG=WARN");
}

TEST_CASE("a group that NCCL never takes over names the peer of its message and its tag",
          "[slow]") {
  ScriptedNccl nccl({.rank = 2, .at = 1, .status = {NcclState::kBusy, {}}});
  const auto outcomes = run_three(nccl, Stay::kUntilFailure, kShort);
  require_culprit(outcomes, 1, "rank 1 sent nothing to rank 2");
  CHECK(outcomes[2].peer_error->awaited == std::vector<std::uint32_t>{7});
}

TEST_CASE("who gives up names whom it awaits, on every rank") {
  ScriptedNccl nccl;
  const auto outcomes = run_job("memory", thread_job(3), [&](Endpoint& endpoint) {
    NcclCommunicator communicator(endpoint, nccl, kGenerous);
    const std::vector<NcclOperation> group{receive(1, 9)};
    if (endpoint.rank() == 0) communicator.give_up(group);
    for (;;) communicator.check({});
  });
  require_culprit(outcomes, 1, "rank 1 sent nothing to rank 0");
  CHECK(nccl.aborts >= 3);
}

TEST_CASE("a rank that dies is named by the control plane, and its peers' NCCL is aborted") {
  ScriptedNccl nccl;
  const auto outcomes = run_job("memory", thread_job(3), [&](Endpoint& endpoint) {
    NcclCommunicator communicator(endpoint, nccl, kGenerous);
    if (endpoint.rank() == 2) return endpoint.abort(2, "rank 2 was hit by lightning");
    for (;;) communicator.check({});
  });
  for (const int rank : {0, 1}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    REQUIRE(outcome.peer_error);
    CHECK(outcome.peer_error->culprit == 2);
    CHECK_THAT(outcome.peer_error->what(), Contains("lightning"));
  }
}

TEST_CASE("the system's NCCL is there, or its absence is told with a remedy") {
  int version = 0;
  std::string id;
  try {
    NcclLibrary& library = nccl_library();
    version = library.version();
    id = library.new_id();
  } catch (const hipress::io::InputError& error) {
    CHECK_THAT(error.what(), Contains("HIPRESS_NCCL") || Contains("-DHIPRESS_CUDA=ON"));
    WARN("skipped: " << error.what());
    return;
  } catch (const hipress::io::RunError& error) {
    WARN("skipped: " << error.what());
    return;
  }
  CHECK(version >= kMinNccl);
  CHECK(id.size() == 128);
}

#ifdef HIPRESS_FAKE_NCCL

namespace {

/// Calls of NCCL that rank 1 of 3 makes for a group of this operation: lines of name, from, to,
/// count, type and peer. The memory has 24 bytes at 0x1000; an all-to-all fills those at 0x2000.
std::string asked_of(const char* file, NcclOperation operation) {
  const auto library = load_nccl(file);
  const auto link = library->join(library->new_id(), 1, 3);
  void* const handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  const auto log = reinterpret_cast<const char* (*)()>(dlsym(handle, "fake_nccl_log"));
  log();
  operation.memory = reinterpret_cast<void*>(0x1000);
  operation.bytes = 24;
  operation.into = reinterpret_cast<void*>(0x2000);
  CHECK(link->issue({&operation, 1}, nullptr).state == NcclState::kReady);
  std::string text = log();
  dlclose(handle);
  return text;
}

}  // namespace

TEST_CASE("NCCL is asked for collectives of equal shards, in place") {
  using Kind = NcclOperation::Kind;
  const auto asked = [](Kind kind, NcclValues values) {
    return asked_of(HIPRESS_FAKE_NCCL, {.kind = kind, .values = values});
  };
  // Shards have 24/3 = 8 bytes; rank 1's is at 0x1008. Types have their numbers in nccl.h: ncclChar
  // 0, ncclFloat16 6, ncclFloat32 7.
  CHECK(asked(Kind::kAllReduce, NcclValues::kFloat32) == "AllReduce 1000 1000 6 7 -1\n");
  CHECK(asked(Kind::kAllGather, NcclValues::kFloat32) == "AllGather 1008 1000 8 0 -1\n");
  CHECK(asked(Kind::kReduceScatter, NcclValues::kFloat32) == "ReduceScatter 1000 1008 2 7 -1\n");
  CHECK(asked(Kind::kReduceScatter, NcclValues::kFloat16) == "ReduceScatter 1000 1008 4 6 -1\n");
  CHECK(asked(Kind::kAllToAll, NcclValues::kFloat32) == "AlltoAll 1000 2000 8 0 -1\n");
}

TEST_CASE("an NCCL that has no all-to-all sends messages instead") {
  CHECK(asked_of(HIPRESS_FAKE_NCCL_OLD, {.kind = NcclOperation::Kind::kAllToAll}) ==
        "Send 1000 0 8 0 0\nRecv 0 2000 8 0 0\n"
        "Send 1008 0 8 0 1\nRecv 0 2008 8 0 1\n"
        "Send 1010 0 8 0 2\nRecv 0 2010 8 0 2\n");
}

TEST_CASE("a library that is no NCCL is told with what it lacks, and a missing one with a remedy") {
  CHECK_THROWS_WITH(load_nccl("libm.so.6"),
                    Contains("libm.so.6 has no nccl") && Contains("NCCL 2.20 or newer is needed"));
  CHECK_THROWS_WITH(load_nccl("/no/such/libnccl.so"), Contains("set HIPRESS_NCCL to the file"));
}

#endif

TEST_CASE("NCCL talks on the interface that is asked for, by name or address, else on loopback") {
  CHECK(nccl_interface("") == "=lo");
  CHECK(nccl_interface("lo") == "=lo");
  CHECK(nccl_interface("127.0.0.1") == "=lo");
  // No host has addresses that are reserved for documentation (RFC 5737, RFC 3849).
  for (const char* absent : {"203.0.113.7", "2001:db8::1", "no_such0"}) {
    CHECK_THROWS_WITH(nccl_interface(absent), Contains(absent) && Contains("ip address show"));
  }
}

TEST_CASE("what the user says of NCCL's interface holds") {
  const char* const variable = "NCCL_SOCKET_IFNAME";
  const std::string before = std::getenv(variable) != nullptr ? std::getenv(variable) : "";
  unsetenv(variable);
  bind_nccl("127.0.0.1");
  CHECK(std::string(std::getenv(variable)) == "=lo");
  setenv(variable, "ib,eth1", 1);
  bind_nccl("");
  CHECK(std::string(std::getenv(variable)) == "ib,eth1");
  before.empty() ? unsetenv(variable) : setenv(variable, before.c_str(), 1);
}
