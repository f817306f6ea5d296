#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <latch>
#include <numeric>

#include "tests/transport/ranks.hpp"

namespace hipress::transport::test {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

std::string any_transport() { return GENERATE(as<std::string>(), "memory", "gloo", "tcp"); }

/// All-reduces `length` numbers, of which element i on rank r is i + r, and throws
/// std::runtime_error unless every sum is right. These sums are exact in any order.
template <class Number>
void require_sums(Endpoint& endpoint, Collective& collective, std::size_t length,
                  const Addition& addition) {
  const auto ranks = static_cast<std::size_t>(endpoint.size());
  std::vector<Number> values(length);
  for (std::size_t i = 0; i < length; ++i) {
    values[i] = static_cast<Number>(i + static_cast<std::size_t>(endpoint.rank()));
  }
  collective.all_reduce(std::as_writable_bytes(std::span(values)), addition);
  for (std::size_t i = 0; i < length; ++i) {
    const auto expected = static_cast<Number>(i * ranks + ranks * (ranks - 1) / 2);
    if (values[i] != expected) throw std::runtime_error("a sum is wrong");
  }
}

/// Gathers, reduces and exchanges shards of `length` numbers, and throws std::runtime_error unless
/// every number is right.
void require_shards(Endpoint& endpoint, Collective& collective, std::size_t length) {
  const auto ranks = static_cast<std::size_t>(endpoint.size());
  const auto rank = static_cast<std::size_t>(endpoint.rank());
  ShardCollectives& shards = *collective.shards();
  const auto value = [&](std::size_t from, std::size_t i) {
    return static_cast<float>(1000 * from + i);
  };
  std::vector<float> shard(length), all(length * ranks), into(length * ranks);
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
  };
  const auto bytes = [](std::vector<float>& values) {
    return std::as_writable_bytes(std::span(values));
  };
  for (std::size_t i = 0; i < length; ++i) shard[i] = value(rank, i);
  shards.all_gather(bytes(shard), bytes(all));
  for (std::size_t i = 0; i < all.size(); ++i) {
    require(all[i] == value(i / length, i % length), "a gathered shard is wrong");
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(rank + i);
  shards.all_to_all(bytes(all), bytes(into));
  for (std::size_t i = 0; i < into.size(); ++i) {
    require(into[i] == static_cast<float>(i / length + rank * length + i % length),
            "an exchanged shard is wrong");
  }
  shards.reduce_scatter(bytes(all), bytes(shard), kFloatAddition);
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t sum = ranks * (rank * length + i) + ranks * (ranks - 1) / 2;
    require(shard[i] == static_cast<float>(sum), "a reduced shard is wrong");
  }
}

}  // namespace

TEST_CASE("messages of all sizes go between all ranks, iteration after iteration, in any order",
          "[slow]") {
  const std::string transport = any_transport();
  const int size = GENERATE(1, 2, 3, 4, 5);
  CAPTURE(transport, size);
  // Sizes lie around the limit of inline content (4096), around a segment (256 KiB), and beyond.
  const std::vector<std::size_t> bytes{0,    1,       3, 4095, 4096, 4097, kMiB / 4, kMiB / 4 + 1,
                                       kMiB, 5 * kMiB};
  const auto outcomes = run_job(transport, thread_job(size), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, bytes);
    for (unsigned i = 0; i < 3; ++i)
      traffic.run(i, 17 * i + static_cast<unsigned>(endpoint.rank()));
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("many small messages overflow no ring", "[slow]") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  // 900 inline messages of 3.1 to 4 KiB fill a pair's ring of 256 KiB about 13 times an iteration.
  std::vector<std::size_t> bytes(900);
  std::iota(bytes.begin(), bytes.end(), std::size_t{4096 - 899});
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, bytes);
    for (unsigned i = 0; i < 10; ++i) traffic.run(i, i);
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("messages of one pair arrive in the order in which they were sent", "[slow]") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  // Large and small messages alternate; a small one must not overtake a large one.
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < 40; ++i) bytes.push_back(i % 2 == 0 ? 600'000 : i);
  std::vector<std::vector<std::uint32_t>> orders(3);
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, bytes);
    for (unsigned i = 0; i < 3; ++i) {
      traffic.begin(i);
      for (std::size_t index = traffic.messages(); index-- > 0;) traffic.send(index);
      traffic.finish();
    }
    orders[static_cast<std::size_t>(endpoint.rank())] = traffic.arrived((endpoint.rank() + 1) % 3);
  });
  CHECK(errors(outcomes) == "");
  std::vector<std::uint32_t> falling(40);
  for (std::uint32_t i = 0; i < 40; ++i) falling[i] = 39 - i;
  for (const auto& order : orders) CHECK(order == falling);
}

TEST_CASE("a message may be shorter than its destination, which keeps the rest") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const std::size_t capacity = 3 * kMiB;
  std::vector<std::int64_t> lengths;
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    std::vector<std::byte> source(capacity, std::byte{1}), destination(capacity);
    const int peer = 1 - endpoint.rank();
    const bool sends = endpoint.rank() == 0;
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    if (sends) outgoing.push_back({peer, 5, source});
    if (!sends) incoming.push_back({peer, 5, destination});
    const auto exchange =
        endpoint.prepare(outgoing, incoming,
                         {.arrived = [&](std::uint32_t, std::int64_t bytes,
                                         Clock::time_point) { lengths.push_back(bytes); },
                          .failed = {}});
    std::uint64_t iteration = 0;
    for (const std::int64_t bytes : {3145728, 0, 100, 4097, 300000}) {
      std::ranges::fill(destination, std::byte{2});
      exchange->begin(iteration++);
      if (sends) exchange->send(0, bytes);
      exchange->finish();
      const auto copied = std::ranges::count(destination, std::byte{1});
      if (!sends && copied != bytes)
        throw std::runtime_error(fmt::format("{} of {}", copied, bytes));
    }
  });
  CHECK(errors(outcomes) == "");
  CHECK(lengths == std::vector<std::int64_t>{3145728, 0, 100, 4097, 300000});
}

TEST_CASE("a handler may send: a token goes around the ring") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const int size = 4;
  std::atomic<int> hops = 0;
  const auto outcomes = run_job(transport, thread_job(size), [&](Endpoint& endpoint) {
    const int next = (endpoint.rank() + 1) % size, previous = (endpoint.rank() + size - 1) % size;
    std::vector<std::byte> token(100'000);
    std::unique_ptr<Exchange> exchange;
    exchange = endpoint.prepare({{next, 1, token}}, {{previous, 1, token}},
                                {.arrived =
                                     [&](std::uint32_t, std::int64_t bytes, Clock::time_point) {
                                       ++hops;
                                       if (endpoint.rank() != 0) exchange->send(0, bytes);
                                     },
                                 .failed = {}});
    for (std::uint64_t i = 0; i < 20; ++i) {
      exchange->begin(i);
      if (endpoint.rank() == 0) exchange->send(0, 100'000);
      exchange->finish();
    }
  });
  CHECK(errors(outcomes) == "");
  CHECK(hops == 20 * size);
}

TEST_CASE("a message to a rank that has not begun waits for it") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  // Rank 1 begins only after an all_gather tells it that rank 0 has sent.
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, {10, 500'000});
    for (unsigned i = 0; i < 3; ++i) {
      if (endpoint.rank() == 0) {
        traffic.begin(i);
        for (std::size_t index = 0; index < traffic.messages(); ++index) traffic.send(index);
        endpoint.all_gather("sent");
        traffic.finish();
      } else {
        endpoint.all_gather("know");
        traffic.run(i, i);
      }
    }
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("messages to posted receives do not wait for the receiver to begin") {
  // Rank 0 sends all messages of iteration 1 before rank 1 begins it. Rank 1 is told of the
  // messages in begin(), and not before.
  const std::string transport = GENERATE(as<std::string>(), "memory", "tcp");
  CAPTURE(transport);
  std::atomic<bool> told_early = false, told_in_begin = false;
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    Traffic traffic(endpoint, {10, 0, 500'000});
    traffic.run(0, 0);
    traffic.post();
    endpoint.all_gather("posted");
    if (endpoint.rank() == 0) {
      traffic.begin(1);
      for (std::size_t index = 0; index < traffic.messages(); ++index) traffic.send(index);
      endpoint.all_gather("sent");  // arrives after the messages
    } else {
      endpoint.all_gather("know");
      told_early = !traffic.arrived(0).empty();
      traffic.begin(1);
      told_in_begin = traffic.arrived(0) == std::vector<std::uint32_t>{0, 1, 2};
      for (std::size_t index = 0; index < traffic.messages(); ++index) traffic.send(index);
    }
    traffic.finish();
  });
  CHECK(errors(outcomes) == "");
  CHECK_FALSE(told_early);
  CHECK(told_in_begin);
}

TEST_CASE("who sent to posted receives may be through before their owner begins, but once only") {
  // Rank 0 receives no messages, so it may finish its last iteration and leave the exchange before
  // rank 1 has begun that iteration. Rank 1 must not begin a further one.
  const std::string transport = GENERATE(as<std::string>(), "memory", "tcp");
  const bool goes_on = GENERATE(false, true);
  CAPTURE(transport, goes_on);
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    std::vector<std::byte> bytes(500'000);
    std::vector<Outgoing> outgoing;
    std::vector<Incoming> incoming;
    if (endpoint.rank() == 0) outgoing.push_back({.peer = 1, .tag = 7, .source = bytes});
    if (endpoint.rank() == 1) incoming.push_back({.peer = 0, .tag = 7, .destination = bytes});
    auto exchange = endpoint.prepare(outgoing, incoming, {});
    const auto iterate = [&](std::uint64_t iteration) {
      exchange->begin(iteration);
      if (endpoint.rank() == 0) exchange->send(0, 500'000);
      exchange->finish();
    };
    iterate(0);
    endpoint.all_gather("one iteration");
    exchange->post();
    endpoint.all_gather("posted");
    if (endpoint.rank() == 0) {
      iterate(1);
      exchange.reset();
    }
    endpoint.all_gather("sent");
    if (endpoint.rank() == 1) {
      iterate(1);
      if (goes_on) iterate(2);
    }
    endpoint.all_gather("received");
    endpoint.all_gather("nobody has failed");
  });
  if (!goes_on) {
    CHECK(errors(outcomes) == "");
    return;
  }
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.peer_error);
    CHECK(outcome.peer_error->culprit == 0);
    CHECK_THAT(outcome.peer_error->what(),
               Catch::Contains("rank 0 left an exchange that rank 1 goes on with"));
  }
}

TEST_CASE("ranks that post receives get the same messages, in any order", "[slow]") {
  const std::string transport = any_transport();
  const int size = GENERATE(2, 3);
  CAPTURE(transport, size);
  const auto outcomes = run_job(transport, thread_job(size), [&](Endpoint& endpoint) {
    Traffic all(endpoint, {0, 3, 4097, 600'000, 20});
    Traffic some(endpoint, {100'000, 7});
    for (unsigned i = 0; i < 40; ++i) {
      all.run(i, 17 * i + static_cast<unsigned>(endpoint.rank()));
      if (i % 5 != 4) all.post();
      if (i % 3 != 0) continue;
      some.run(i, i);
      // Rank 0 posts only every other time.
      if (endpoint.rank() > 0 || i % 2 == 0) some.post();
    }
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("several exchanges of one endpoint live side by side and one after the other") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    Traffic first(endpoint, {100, 10'000});
    for (unsigned round = 0; round < 3; ++round) {
      Traffic second(endpoint, {20'000, 7});
      first.run(round, 1);
      second.run(round, 2);
      second.run(round + 1, 3);
    }
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("an exchange without messages, and one that is never begun, are fine") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    Traffic nothing(endpoint, {});
    for (unsigned i = 0; i < 3; ++i) nothing.run(i, 0);
    const Traffic unused(endpoint, {100'000});
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("a rank that has nothing to exchange may be through before the other one prepares") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto through_before_the_other_prepares = [](Endpoint& endpoint, const auto& exchange) {
    if (endpoint.rank() == 0) exchange();
    endpoint.all_gather("through");
    if (endpoint.rank() == 1) exchange();
    endpoint.all_gather("the other one too");
  };
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    through_before_the_other_prepares(endpoint, [&] { Traffic(endpoint, {}).run(0, 0); });
    through_before_the_other_prepares(endpoint, [&] { const Traffic unused(endpoint, {100'000}); });
    Traffic(endpoint, {10, 100'000}).run(1, 2);
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("all_gather gives every rank the text of every rank") {
  const std::string transport = any_transport();
  const int size = GENERATE(1, 2, 4);
  CAPTURE(transport, size);
  // Texts are empty, short, or longer than a ring (256 KiB), and differ between rounds.
  const auto text = [](int rank, int round) {
    const std::size_t lengths[]{0, 5, 1'000'000};
    return std::string(lengths[static_cast<std::size_t>(rank + round) % 3],
                       static_cast<char>('a' + rank));
  };
  std::atomic<int> equal = 0;
  const auto outcomes = run_job(transport, thread_job(size), [&](Endpoint& endpoint) {
    for (int round = 0; round < 4; ++round) {
      std::vector<std::string> expected;
      for (int rank = 0; rank < size; ++rank) expected.push_back(text(rank, round));
      if (endpoint.all_gather(text(endpoint.rank(), round)) == expected) ++equal;
    }
  });
  CHECK(errors(outcomes) == "");
  CHECK(equal == 4 * size);
}

TEST_CASE("wrong use of an exchange is refused, and does no harm") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  std::atomic<int> refused = 0;
  const auto refuses = [&](const auto& call) {
    try {
      call();
    } catch (const PeerError&) {
      throw;
    } catch (const std::exception&) {
      ++refused;
    }
  };
  const auto outcomes = run_job(transport, thread_job(2), [&](Endpoint& endpoint) {
    std::vector<std::byte> memory(10);
    const auto prepare = [&](int peer) { endpoint.prepare({{peer, 1, memory}}, {}, {}); };
    refuses([&] { prepare(endpoint.rank()); });
    refuses([&] { prepare(-1); });
    refuses([&] { prepare(2); });
    const int peer = 1 - endpoint.rank();
    refuses([&] { endpoint.prepare({}, {{peer, 1, memory}, {peer, 1, memory}}, {}); });
    Traffic traffic(endpoint, {10});
    refuses([&] { traffic.send(0); });  // before begin
    traffic.begin(1);
    refuses([&] { traffic.exchange().begin(2); });  // before finish
    refuses([&] { traffic.exchange().send(0, 11); });
    refuses([&] { traffic.exchange().send(0, -1); });
    refuses([&] { traffic.exchange().send(1, 1); });
    traffic.send(0);
    refuses([&] { traffic.send(0); });  // twice
    if (transport != "gloo") {
      refuses([&] { traffic.exchange().post(); });  // before finish
      traffic.finish();
      traffic.post();
      refuses([&] { traffic.exchange().post(); });  // twice
    } else {
      traffic.finish();
      refused += 2;
    }
    traffic.run(2, 0);
  });
  CHECK(errors(outcomes) == "");
  CHECK(refused == 2 * 12);
}

TEST_CASE("an all-reduce leaves the same sum on all ranks, call after call, of 4 and 2 bytes") {
  const std::string transport = any_transport();
  const int size = GENERATE(1, 2, 3, 4, 5);
  CAPTURE(transport, size);
  const std::vector<std::size_t> lengths{0, 1, 3, 31, 4096, 300'001};
  const auto outcomes = run_job(transport, thread_job(size), [&](Endpoint& endpoint) {
    const auto collective = endpoint.collective();
    for (const std::size_t length : lengths) {
      require_sums<float>(endpoint, *collective, length, kFloatAddition);
      require_sums<std::uint16_t>(endpoint, *collective, length, kShortAddition);
    }
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("gloo gathers, reduces and exchanges shards, and other transports say that they do not") {
  const std::string transport = any_transport();
  const int size = GENERATE(1, 2, 3, 4, 5);
  CAPTURE(transport, size);
  const auto outcomes = run_job(transport, thread_job(size), [&](Endpoint& endpoint) {
    const auto collective = endpoint.collective();
    const bool has_shards = collective->shards() != nullptr;
    if (has_shards != (transport == "gloo")) throw std::runtime_error("says otherwise");
    if (!has_shards) return;
    for (const std::size_t length : {0, 1, 3, 31, 4096, 100'001}) {
      require_shards(endpoint, *collective, length);
    }
  });
  CHECK(errors(outcomes) == "");
}

TEST_CASE("shards that are not equal parts of the whole are refused") {
  std::atomic<int> refused = 0;
  const auto outcomes = run_job("gloo", thread_job(2), [&](Endpoint& endpoint) {
    const auto collective = endpoint.collective();
    ShardCollectives& shards = *collective->shards();
    std::vector<std::byte> few(12), many(20);
    const auto refuses = [&](const auto& call) {
      try {
        call();
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    };
    refuses([&] { shards.all_gather(few, many); });
    refuses([&] { shards.reduce_scatter(many, few, kFloatAddition); });
    refuses([&] { shards.all_to_all(many, few); });
    refuses([&] { shards.all_to_all(std::span(many).first(19), std::span(many).first(19)); });
    require_shards(endpoint, *collective, 7);  // the job still works
  });
  CHECK(errors(outcomes) == "");
  CHECK(refused == 2 * 4);
}

TEST_CASE("a rank that ends the job wakes those that wait for its shards") {
  const int call = GENERATE(0, 1, 2);
  CAPTURE(call);
  const auto outcomes = run_job("gloo", thread_job(3), [&](Endpoint& endpoint) {
    const auto collective = endpoint.collective();
    if (endpoint.rank() == 1) return endpoint.abort(1, "rank 1 has had enough");
    std::vector<std::byte> shard(4000), all(12000), into(12000);
    ShardCollectives& shards = *collective->shards();
    if (call == 0) shards.all_gather(shard, all);
    if (call == 1) shards.reduce_scatter(all, shard, kFloatAddition);
    if (call == 2) shards.all_to_all(all, into);
  });
  for (const int rank : {0, 2}) {
    const auto& error = outcomes[static_cast<std::size_t>(rank)].peer_error;
    REQUIRE(error.has_value());
    CHECK(error->culprit == 1);
    CHECK_THAT(error->what(), Catch::Contains("has had enough"));
  }
}

TEST_CASE("a rank that ends the job wakes those that wait for it in an all-reduce") {
  const std::string transport = any_transport();
  CAPTURE(transport);
  const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
    const auto collective = endpoint.collective();
    if (endpoint.rank() == 1) return endpoint.abort(1, "rank 1 has had enough");
    std::vector<float> values(1000, 1.0f);
    collective->all_reduce(values);
  });
  for (const int rank : {0, 2}) {
    const auto& error = outcomes[static_cast<std::size_t>(rank)].peer_error;
    REQUIRE(error.has_value());
    CHECK(error->culprit == 1);
    CHECK_THAT(error->what(), Catch::Contains("has had enough"));
  }
}

TEST_CASE("a rank in an all-reduce is told who left before it, whoever else waits") {
  // Rank 2 leaves. In a ring of four, rank 0's neighbours are ranks 1 and 3, which do nothing.
  const std::string transport = any_transport();
  CAPTURE(transport);
  std::promise<void> over;
  const std::shared_future<void> is_over = over.get_future().share();
  std::latch neighbours(2);  // rank 0 waits until ranks 1 and 3 have finished the first all-reduce
  const auto outcomes = run_job(transport, thread_job(4), [&](Endpoint& endpoint) {
    const auto collective = endpoint.collective();
    std::vector<float> values(1000, 1.0f);
    collective->all_reduce(values);
    if (endpoint.rank() == 2) return;
    if (endpoint.rank() != 0) {
      neighbours.count_down();
      return is_over.wait();
    }
    neighbours.wait();
    try {
      collective->all_reduce(values);
    } catch (...) {
      over.set_value();
      throw;
    }
    over.set_value();
  });
  REQUIRE(outcomes[0].peer_error);
  CHECK(outcomes[0].peer_error->culprit == 2);
  CHECK_THAT(outcomes[0].peer_error->what(),
             Catch::Contains("rank 2 left the job before a collective"));
  CHECK(outcomes[0].peer_error->loss == Loss::kLeft);
  for (const std::size_t rank : {1u, 2u, 3u}) CHECK(errors({outcomes[rank]}) == "");
}

TEST_CASE("a rank may leave after an all-reduce in which others still are", "[slow]") {
  const std::string transport = any_transport();
  const std::size_t length = GENERATE(1, 300'001);
  CAPTURE(transport, length);
  for (int time = 0; time < 10; ++time) {
    const auto outcomes = run_job(transport, thread_job(3), [&](Endpoint& endpoint) {
      const auto collective = endpoint.collective();
      require_sums<float>(endpoint, *collective, length, kFloatAddition);
      if (collective->shards() != nullptr) require_shards(endpoint, *collective, length);
    });
    REQUIRE(errors(outcomes) == "");
  }
}

}  // namespace hipress::transport::test
