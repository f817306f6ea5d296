#include "transport/rendezvous.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "io/error.hpp"
#include "io/host.hpp"
#include "io/version.hpp"
#include "tests/transport/ranks.hpp"
#include "transport/loopback.hpp"

namespace hipress::transport::test {
namespace {

using Catch::Matchers::Contains;

std::string any_transport() { return GENERATE(as<std::string>(), "memory", "gloo", "tcp"); }

/// An empty folder that is removed after the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "hipress-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string rendezvous() const { return "file://" + path_.string(); }
  std::string only_file() const { return std::filesystem::directory_iterator(path_)->path(); }
  std::size_t files() const {
    const std::filesystem::directory_iterator begin(path_);
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

/// Connects every rank, with options that `adapt` has changed for it, and makes it leave again.
std::vector<Outcome> connect_all(const std::string& transport, const JobOptions& job,
                                 const std::function<void(JobOptions&)>& adapt) {
  return run_ranks(job.size, [&](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    adapt(mine);
    const auto endpoint = find_transport(transport).connect(mine);
    Traffic(*endpoint, {3, 5000}).run(0, 0);
  });
}

/// Message of the io::InputError that connecting throws.
std::string refusal(const std::string& transport, const JobOptions& job) {
  try {
    find_transport(transport).connect(job);
  } catch (const io::InputError& error) {
    return error.what();
  }
  return "";
}

/// Name of the item that a rank of `job` publishes under `key`.
std::string item_name(const JobOptions& job, int rank, const std::string& key) {
  JobOptions job_only;
  job_only.job = job.job;
  return fmt::format("hipress/{:016x}/{}/{}", job_hash(job_only), rank, key);
}

/// Leaves a rank's card, with the fields of `different` changed, at the rendezvous of `job`. The
/// rendezvous exists at least as long as the returned object.
[[nodiscard]] std::shared_ptr<void> leave_card(const JobOptions& job, int rank,
                                               const nlohmann::json& different) {
  const auto store = shared_by_name<LocalStore>(job.rendezvous);
  nlohmann::json card = {{"rank", rank},
                         {"version", io::release() + ", protocol 6"},
                         {"size", job.size},
                         {"plan", job.plan},
                         {"timeout", job.timeout_s},
                         {"silence", job.silence_s},
                         {"nonce", "theirs"}};
  card.update(different);
  const std::string name = item_name(job, rank, "card");
  store->add(name, Seal(std::nullopt).close(name, card.dump()), Keep::kForGood);
  return store;
}

/// A port of this host that accepts connections and never answers, like a stopped Redis.
class Mute {
 public:
  Mute() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_, any, length) != 0 || ::listen(socket_, 8) != 0 ||
        ::getsockname(socket_, any, &length) != 0) {
      throw std::runtime_error("no port to listen on");
    }
    port_ = ntohs(address.sin_port);
  }
  ~Mute() { ::close(socket_); }
  Mute(const Mute&) = delete;
  Mute& operator=(const Mute&) = delete;

  std::string rendezvous() const { return fmt::format("redis://127.0.0.1:{}", port_); }

 private:
  int socket_, port_ = 0;
};

/// IPv4 addresses, with ports, at which this process listens.
std::set<std::string> listening() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename().string());
    int listens = 0;
    socklen_t length = sizeof listens;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || !listens) {
      continue;
    }
    sockaddr_in address{};
    length = sizeof address;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    found.insert(fmt::format("{}:{}", text.data(), ntohs(address.sin_port)));
  }
  return found;
}

}  // namespace

TEST_CASE("the transports are known by name") {
  CHECK(find_transport("gloo").name == "gloo");
  CHECK(find_transport("memory").name == "memory");
  CHECK_THROWS_AS(find_transport("glou"), io::InputError);
  CHECK_THROWS_WITH(find_transport("glou"), Contains("did you mean 'gloo'?") && Contains("memory"));
}

TEST_CASE("a rendezvous, rank, size, interface or timeout that makes no sense is refused") {
  JobOptions job = thread_job(2);
  const auto with = [&](const auto& change) {
    JobOptions changed = job;
    change(changed);
    return refusal("gloo", changed);
  };
  CHECK_THAT(with([](JobOptions& o) { o.rendezvous = "nowhere"; }), Contains("redis://host:port"));
  CHECK_THAT(with([](JobOptions& o) { o.rendezvous = "file:///no/such/folder"; }),
             Contains("there is no folder '/no/such/folder'"));
  CHECK_THAT(with([](JobOptions& o) { o.rendezvous = "file://relative"; }),
             Contains("not absolute"));
  CHECK_THAT(with([](JobOptions& o) { o.rendezvous = "redis://:1"; }),
             Contains("the host is missing"));
  CHECK_THAT(with([](JobOptions& o) { o.rendezvous = "redis://host:port"; }),
             Contains("from 1 to 65535"));
  CHECK_THAT(with([](JobOptions& o) { o.rendezvous = "redis://127.0.0.1:1"; }),
             Contains("refused"));
  CHECK_THAT(with([](JobOptions& o) { o.rank = 2; }), Contains("ranks are 0 to 1"));
  CHECK_THAT(with([](JobOptions& o) { o.rank = -1; }), Contains("ranks are 0 to 1"));
  CHECK_THAT(with([](JobOptions& o) { o.size = 0; }), Contains("1 is the least"));
  for (const double timeout_s : {0.0, -1.0, 0.01, 1e10, std::nan(""), HUGE_VAL}) {
    CAPTURE(timeout_s);
    CHECK_THAT(with([=](JobOptions& o) { o.timeout_s = timeout_s; }),
               Contains("it must be from 0.1 to 1000000 s"));
  }
  CHECK_THAT(with([](JobOptions& o) { o.interface = "no-such"; }),
             Contains("neither an address nor"));
  CHECK_THAT(with([](JobOptions& o) { o.interface = "192.0.2.1"; }), Contains("`insecure`"));
  CHECK_THAT(with([](JobOptions& o) {
               o.interface = "192.0.2.1";
               o.insecure = true;
             }),
             Contains("rank 0 cannot listen at 192.0.2.1"));
  job.rendezvous = "file:///tmp";
  CHECK_THAT(refusal("memory", job), Contains("threads of one process"));
}

TEST_CASE("ranks meet in a folder, and leave nothing there") {
  const Folder folder;
  JobOptions job = thread_job(4);
  job.rendezvous = folder.rendezvous();
  for (int round = 0; round < 2; ++round) {  // the second time with the same job id
    const auto outcomes = connect_all("gloo", job, [](JobOptions&) {});
    CHECK(errors(outcomes) == "");
    CHECK(folder.files() == 0);
  }
}

TEST_CASE("a Redis that does not answer ends the meeting when the timeout has passed", "[slow]") {
  const Mute mute;
  JobOptions job = thread_job(2, kShort);
  job.rendezvous = mute.rendezvous();
  std::string message;
  const auto begin = Clock::now();
  try {
    find_transport("gloo").connect(job);
  } catch (const io::RunError& error) {
    message = error.what();
  }
  CHECK(Clock::now() - begin < std::chrono::duration<double>(kShort + kMargin));
  CHECK(message ==
        "rank 0 cannot meet others at '" + job.rendezvous + "' within 2 s: it does not answer");
}

TEST_CASE("ranks find each other by interface or address") {
  const std::string interface = GENERATE(as<std::string>(), "", "lo", "127.0.0.1");
  CAPTURE(interface);
  const auto outcomes =
      connect_all("gloo", thread_job(2), [&](JobOptions& o) { o.interface = interface; });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("a rank listens on the interface asked for, and on loopback by default") {
  struct Case {
    std::string interface, address;
  };
  // All of 127/8 is this host, so 127.0.0.2 differs from the default and works everywhere.
  const Case each =
      GENERATE(Case{"", "127.0.0.1:"}, Case{"lo", "127.0.0.1:"}, Case{"127.0.0.2", "127.0.0.2:"});
  CAPTURE(each.interface);
  const std::set<std::string> before = listening();
  JobOptions job = thread_job(2);
  job.interface = each.interface;
  std::vector<std::string> ours;
  std::atomic<bool> zero_has_failed = false;
  const auto outcomes = run_ranks(2, [&](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    // Rank 0 listens until rank 1 has come. So rank 1 looks at the open ports before it connects.
    while (rank == 1 && ours.empty()) {
      if (zero_has_failed) return;
      std::this_thread::yield();
      std::ranges::set_difference(listening(), before, std::back_inserter(ours));
    }
    try {
      find_transport("gloo").connect(mine);
    } catch (...) {
      if (rank == 0) zero_has_failed = true;
      throw;
    }
  });
  CHECK(errors(outcomes) == "");
  for (const std::string& address : ours) {
    CHECK_THAT(address, Catch::Matchers::StartsWith(each.address));
  }
}

TEST_CASE("ranks open no more files and sockets than their transport says") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto open_now = [] {
    const std::filesystem::directory_iterator begin("/proc/self/fd");
    return static_cast<std::int64_t>(std::distance(begin, std::filesystem::directory_iterator()));
  };
  constexpr int kRanks = 5;
  const std::int64_t before = open_now();
  std::int64_t connected = 0, with_collective = 0;
  const auto outcomes = run_job(transport, thread_job(kRanks), [&](Endpoint& endpoint) {
    endpoint.all_gather("connected");
    if (endpoint.rank() == 0) connected = open_now() - before;
    endpoint.all_gather("counted");
    const auto collective = endpoint.collective();
    endpoint.all_gather("connected again");
    if (endpoint.rank() == 0) with_collective = open_now() - before;
    endpoint.all_gather("counted");
  });
  REQUIRE(errors(outcomes) == "");
  const Descriptors each = find_transport(transport).descriptors(kRanks);
  CHECK(connected <= kRanks * each.connected);
  CHECK(with_collective <= kRanks * (each.connected + each.collective));
  // The bound must not be far too large either, or jobs that could run would be refused.
  CHECK(connected >= kRanks * each.connected / 2);
}

TEST_CASE("what an earlier job left in a folder stops only a job with the same text", "[slow]") {
  const Folder folder;
  JobOptions job = thread_job(2, kShort);
  job.rendezvous = folder.rendezvous();
  job.job = "first";
  CHECK_THROWS_AS(find_transport("gloo").connect(job), PeerError);  // rank 1 never comes
  REQUIRE(folder.files() > 0);

  job.timeout_s = job.silence_s = kGenerous;
  CHECK_THAT(refusal("gloo", job), Contains("rank 0 of job 'first' is taken") &&
                                       Contains("left its files") && Contains("its own text"));
  job.job = "second";
  CHECK(errors(connect_all("gloo", job, [](JobOptions&) {})) == "");
}

TEST_CASE("ranks of different jobs at one place do not connect") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const JobOptions job = thread_job(4);
  // The four threads are ranks 0 and 1 of two jobs.
  const auto outcomes = connect_all(transport, job, [](JobOptions& o) {
    o.size = 2;
    o.job = o.rank < 2 ? "one" : "other";
    o.rank = o.rank % 2;
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("ranks with another plan or size are told so, on both sides") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto of_plan = connect_all(transport, thread_job(2),
                                   [](JobOptions& o) { o.plan = o.rank == 0 ? "raw" : "onebit"; });
  CHECK_THAT(of_plan[0].other_error,
             Contains(R"(rank 1 of job 'transport test' has plan "onebit", rank 0)"));
  CHECK_THAT(of_plan[1].other_error,
             Contains(R"(rank 0 of job 'transport test' has plan "raw", rank 1)"));
  const auto of_size =
      connect_all(transport, thread_job(2), [](JobOptions& o) { o.size = 2 + o.rank; });
  CHECK_THAT(of_size[0].other_error, Contains("has size 3, rank 0 has 2"));
  CHECK_THAT(of_size[1].other_error, Contains("has size 2, rank 1 has 3"));
  const auto of_timeout = connect_all(transport, thread_job(2),
                                      [](JobOptions& o) { o.timeout_s = kGenerous + o.rank; });
  CHECK_THAT(of_timeout[0].other_error, Contains("has timeout 121.0, rank 0 has 120.0"));
  CHECK_THAT(of_timeout[1].other_error, Contains("has timeout 120.0, rank 1 has 121.0"));
}

TEST_CASE("a rank that takes no part tells the others why, where they meet") {
  const std::string transport = any_transport();
  const std::string why =
      GENERATE(as<std::string>(), "plan.yaml: cannot be read", "rank 1 lacks memory");
  CAPTURE(transport, why);
  const JobOptions job = thread_job(3);
  const auto store = shared_by_name<LocalStore>(job.rendezvous);  // keeps it alive
  const auto outcomes = connect_all(transport, job, [&](JobOptions& o) {
    if (o.rank != 1) return;
    refuse(o, why);
    throw io::InputError("refused");
  });
  for (const std::size_t rank : {0, 2}) {
    // The rank is put before the reason, unless the reason names it.
    CHECK(outcomes[rank].other_error == (why.starts_with("rank 1") ? why : "rank 1: " + why));
  }
}

TEST_CASE("a rank that takes no part tells ranks that meet in a folder, too", "[slow]") {
  const Folder folder;
  JobOptions job = thread_job(3);
  job.rendezvous = folder.rendezvous();
  const auto outcomes = connect_all("tcp", job, [&](JobOptions& o) {
    if (o.rank != 1) return;
    refuse(o, "no plan");
    throw io::InputError("refused");
  });
  for (const std::size_t rank : {0, 2}) CHECK(outcomes[rank].other_error == "rank 1: no plan");
  CHECK(folder.files() == 2);  // the cards of the ranks that came
}

TEST_CASE("a refusal leaves nothing in a folder, where it would stop the next job", "[slow]") {
  const Folder folder;
  JobOptions job = thread_job(2, kShort);
  job.rendezvous = folder.rendezvous();
  refuse(job, "no plan");
  CHECK(folder.files() == 0);
  job.timeout_s = job.silence_s = kGenerous;
  CHECK(errors(connect_all("tcp", job, [](JobOptions&) {})) == "");
}

TEST_CASE("loopback between hosts is refused, and told which rank listens there", "[slow]") {
  const auto of = [](const std::string& boot, const std::string& address,
                     const std::string& interface) {
    JobOptions job = thread_job(2, kShort);
    job.interface = interface;
    const auto store =
        leave_card(job, 1, {{"host", "other"}, {"boot", boot}, {"loopback", address}});
    return refusal("gloo", job);
  };
  const std::string here = io::host_name();
  const std::string both = "rank 1 is on host other and rank 0 on host " + here + ", but rank 0 ";
  const std::string remedy = ", where only its own host reaches it: give `interface`";
  SECTION("forgotten on both") {
    CHECK(of("another", "127.0.0.1", "") == both + "listens on loopback (127.0.0.1)" + remedy);
  }
  SECTION("asked for by name") {
    CHECK(of("another", "", "lo") == both + "listens on loopback (lo)" + remedy);
  }
  SECTION("by a rank that it does not concern, with the words of those that it does") {
    JobOptions job = thread_job(3, kShort);
    job.rank = 2;
    const auto first = leave_card(job, 0, {{"host", "a"}, {"boot", "of a"}, {"loopback", ""}});
    const auto second =
        leave_card(job, 1, {{"host", "b"}, {"boot", "of b"}, {"loopback", "127.0.0.1"}});
    CHECK(refusal("gloo", job) ==
          "rank 0 is on host a and rank 1 on host b, but rank 1 listens on loopback (127.0.0.1)" +
              remedy);
  }
  SECTION("on one host, nothing is said of it, and the other rank is awaited") {
    CHECK_THROWS_AS(of(io::boot_id(), "127.0.0.1", ""), PeerError);
    CHECK_THROWS_AS(of("", "127.0.0.1", ""), PeerError);  // unknown boot id
  }
}

TEST_CASE("loopback is known by address and by name") {
  CHECK(loopback("") == "127.0.0.1");
  for (const char* own : {"127.0.0.1", "127.8.0.2", "::1", "lo"}) CHECK(loopback(own) == own);
  // The first two are reserved for documentation (RFC 5737, RFC 3849).
  for (const char* other : {"192.0.2.1", "2001:db8::1", "no-such"}) CHECK(loopback(other) == "");
}

TEST_CASE("a store that fails is told in its own words, and no rank is blamed", "[slow]") {
  const auto failure = [](const JobOptions& job) {
    try {
      find_transport("gloo").connect(job);
    } catch (const io::InputError& error) {
      return std::string("refused: ") + error.what();
    } catch (const io::RunError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  SECTION("where nobody may write") {
    JobOptions job = thread_job(2);
    job.rendezvous = "file:///proc";
    // Root may write everywhere, so for root only the attempt to write fails.
    CHECK_THAT(
        failure(job),
        Contains(::geteuid() == 0 ? "rank 0 of job 'transport test' cannot leave its card at "
                                    "'file:///proc': "
                                  : "rank 0 may not write to the folder '/proc'"));
  }
  SECTION("where a file cannot be read") {
    const Folder folder;
    JobOptions job = thread_job(2, kShort);
    job.rendezvous = folder.rendezvous();
    job.rank = 1;
    CHECK_THROWS_AS(find_transport("gloo").connect(job), PeerError);  // leaves its card
    const std::string card = folder.only_file();
    std::filesystem::remove(card);
    std::filesystem::create_symlink(card, card);
    job.rank = 0;
    CHECK_THAT(failure(job), Contains("rank 0 cannot read the card of rank 1 at 'file://"));
  }
}

TEST_CASE("a rank of another version is refused, and told which is which") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const JobOptions job = thread_job(2);
  const auto store = leave_card(job, 1, {{"version", "0.0.1, protocol 1"}});
  CHECK_THAT(
      refusal(transport, job),
      Contains(R"(rank 1 of job 'transport test' has version "0.0.1, protocol 1", rank 0)") &&
          Contains('"' + io::release() + ", protocol "));
}

TEST_CASE("two ranks with one number: the second is refused") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  JobOptions job = thread_job(2);
  const auto outcomes = run_ranks(2, [&](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    const auto endpoint = find_transport(transport).connect(mine);
    endpoint->all_gather("connected");
    if (rank == 0) {
      mine.rank = 1;
      const std::string message = refusal(transport, mine);
      if (message.find("two ranks have this number") == std::string::npos)
        throw std::runtime_error(message);
    }
    endpoint->all_gather("the job goes on");
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("a rank that does not come is named", "[slow]") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const JobOptions job = thread_job(3, kShort);
  const auto outcomes = run_ranks(2, [&](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    find_transport(transport).connect(mine);
  });
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.peer_error);
    CHECK(outcome.peer_error->culprit == 2);
    CHECK_THAT(outcome.peer_error->what(), Contains("rank 2 did not come to 'local:"));
  }
}

TEST_CASE("a job of one rank needs nobody") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto endpoint = find_transport(transport).connect(thread_job(1));
  CHECK(endpoint->all_gather("alone") == std::vector<std::string>{"alone"});
}

}  // namespace hipress::transport::test
