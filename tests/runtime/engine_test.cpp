#include "runtime/engine.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <random>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "replay/inputs.hpp"
#include "replay/reference.hpp"
#include "runtime/values.hpp"
#include "tests/runtime/fake_device.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::runtime;
using Catch::Contains;

namespace {

constexpr std::uint64_t kSeed = 5;

std::vector<Gradient> make_gradients(const std::vector<std::int64_t>& sizes) {
  std::vector<Gradient> gradients;
  for (const std::int64_t elements : sizes) {
    gradients.push_back({.name = "g" + std::to_string(gradients.size()), .elements = elements});
  }
  return gradients;
}

std::shared_ptr<const Compiled> compile_all(const std::vector<std::int64_t>& sizes,
                                            const std::string& topology, std::uint32_t nodes,
                                            const std::string& algorithm,
                                            const std::function<void(casync::Plan&)>& change = {}) {
  plans::ResolvedPlan plan =
      make_plan(make_model(sizes), topology, nodes, 2, codec_or_raw(algorithm));
  if (change) change(plan.plan);
  return compile(make_gradients(sizes), std::move(plan));
}

/// Serial reference: next() returns the mean of every gradient on `rank`, iteration by iteration.
class Expected {
 public:
  Expected(const Compiled& compiled, std::uint32_t rank)
      : compiled_(compiled),
        rank_(rank),
        reference_(compiled.graph, compiled.model, compiled.plan, {.seed = kSeed}) {}

  std::vector<std::vector<float>> next() {
    std::vector<std::vector<float>> means(compiled_.model.gradients.size());
    std::vector<std::vector<float>> units;
    const casync::Layout& layout = reference_.layout();
    for (const casync::Unit& unit : layout.units) {
      units.emplace_back(static_cast<std::size_t>(unit.elements));
    }
    for (std::size_t p = 0; p < reference_.partitions().size(); ++p) {
      std::vector<float>& unit = units[reference_.partitions()[p].gradient];
      reference_.run(p, iteration_, [&](const replay::Reference::Block& block) {
        std::ranges::copy(block.values[rank_], unit.begin() + block.first);
      });
    }
    ++iteration_;
    for (std::size_t u = 0; u < units.size(); ++u) {
      for (const casync::Member& member : casync::places(layout.units[u], compiled_.model)) {
        const auto first = units[u].begin() + member.first;
        means[member.gradient].assign(first, first + member.elements);
      }
    }
    return means;
  }

 private:
  const Compiled& compiled_;
  std::uint32_t rank_;
  replay::Reference reference_;
  std::uint64_t iteration_ = 0;
};

std::vector<float> input(const Compiled& compiled, std::uint32_t gradient, std::uint32_t rank,
                         std::uint64_t iteration) {
  std::vector<float> values(static_cast<std::size_t>(compiled.model.gradients[gradient].elements));
  replay::fill_inputs({.seed = kSeed, .iteration = iteration, .node = rank, .gradient = gradient},
                      0, values);
  return values;
}

Tensor lend(std::vector<float>& values) {
  return {.data = values.data(), .elements = static_cast<std::int64_t>(values.size())};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void require_none(const std::vector<std::exception_ptr>& errors) {
  for (const std::exception_ptr& error : errors) REQUIRE(message_of(error) == "no error");
}

/// Synchronises all gradients in an order drawn for this rank. Returns the names of wrong ones.
std::string wrong_in(Engine& engine, Expected& expected, std::uint32_t rank,
                     std::uint64_t iteration) {
  const Compiled& compiled = engine.compiled();
  const std::size_t count = compiled.model.gradients.size();
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t g = 0; g < count; ++g) order[g] = g;
  std::mt19937 random(static_cast<unsigned>(rank * 1000 + iteration));
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::vector<float>> values(count);
  std::vector<Work> works(count);
  for (const std::uint32_t g : order) {
    values[g] = input(compiled, g, rank, iteration);
    works[g] = engine.submit(g, lend(values[g]));
  }
  const std::vector<std::vector<float>> means = expected.next();
  std::string wrong;
  for (std::uint32_t g = 0; g < count; ++g) {
    works[g].wait();
    if (!same_bits(values[g], means[g])) wrong += " g" + std::to_string(g);
  }
  return wrong;
}

/// Names of the wrong gradients per rank, over all iterations.
std::vector<std::string> wrong_of(const std::shared_ptr<const Compiled>& compiled,
                                  const std::string& transport, std::uint64_t iterations) {
  const auto ranks = static_cast<int>(compiled->graph.nodes);
  std::vector<std::string> wrong(static_cast<std::size_t>(ranks));
  require_none(run_ranks(
      ranks,
      [&](transport::Endpoint& endpoint) {
        const auto rank = static_cast<std::uint32_t>(endpoint.rank());
        Engine engine(endpoint, compiled, {.seed = kSeed});
        Expected expected(*compiled, rank);
        for (std::uint64_t i = 0; i < iterations; ++i) {
          wrong[rank] += wrong_in(engine, expected, rank, i);
        }
      },
      transport));
  return wrong;
}

}  // namespace

TEST_CASE("ranks that submit in different orders get the reference's bits") {
  const std::string transport = GENERATE("memory", "tcp");
  const std::string topology = GENERATE("ps", "ring", "allgather");
  const std::string algorithm = GENERATE("raw", "onebit", "terngrad", "dgc", "fp16");
  CAPTURE(transport, topology, algorithm);
  const auto compiled = compile_all({1000, 7, 64, 3333, 1}, topology, 3, algorithm);
  CHECK(wrong_of(compiled, transport, 4) == std::vector<std::string>(3));
}

TEST_CASE("a plan's bulk groups, batches and lack of pipelining change no bit") {
  const std::string topology = GENERATE("ps", "ring", "allgather");
  const auto compiled =
      compile_all({100, 2000, 33, 64, 7, 5000, 1}, topology, 2, "terngrad", [](casync::Plan& plan) {
        plan.bulk.threshold_bytes = 1024;
        plan.batch.threshold_bytes = 1 << 20;
        plan.pipelining = false;
      });
  CHECK(compiled->graph.first_group == 7);
  CHECK(wrong_of(compiled, "memory", 3) == std::vector<std::string>(2));
}

TEST_CASE("one rank alone keeps its values") {
  CHECK(wrong_of(compile_all({100, 33}, "ring", 1, "raw"), "memory", 2) ==
        std::vector<std::string>(1));
}

TEST_CASE("all-reduces run in one order on ranks that submit in different ones") {
  // Element i has the value i + r on rank r of 3, so the mean is exactly i + 1.
  const std::string transport = GENERATE("memory", "tcp");
  const auto compiled = compile_all({900, 5, 64, 300}, "allreduce", 3, "raw");
  require_none(run_ranks(
      3,
      [&](transport::Endpoint& endpoint) {
        Engine engine(endpoint, compiled, {});
        for (int iteration = 0; iteration < 5; ++iteration) {
          std::vector<std::vector<float>> values;
          std::vector<Work> works(4);
          for (const models::Gradient& gradient : compiled->model.gradients) {
            values.emplace_back(static_cast<std::size_t>(gradient.elements));
            for (std::size_t i = 0; i < values.back().size(); ++i) {
              values.back()[i] = static_cast<float>(i) + static_cast<float>(endpoint.rank());
            }
          }
          for (std::uint32_t k = 0; k < 4; ++k) {
            const auto g = (k * 3 + static_cast<std::uint32_t>(endpoint.rank() + iteration)) % 4;
            works[g] = engine.submit(g, lend(values[g]));
          }
          for (std::uint32_t g = 0; g < 4; ++g) {
            works[g].wait();
            for (std::size_t i = 0; i < values[g].size(); ++i) {
              if (values[g][i] != static_cast<float>(i) + 1) {
                throw std::runtime_error("gradient " + std::to_string(g) + " is wrong");
              }
            }
          }
        }
      },
      transport));
}

TEST_CASE("a gradient's iterations go on while another gradient has not begun") {
  const auto compiled = compile_all({500, 100}, "ring", 2, "terngrad");
  require_none(run_ranks(2, [&](transport::Endpoint& endpoint) {
    const auto rank = static_cast<std::uint32_t>(endpoint.rank());
    Engine engine(endpoint, compiled, {.seed = kSeed});
    Expected expected(*compiled, rank);
    std::vector<std::vector<std::vector<float>>> means;
    for (int i = 0; i < 4; ++i) means.push_back(expected.next());
    for (const std::uint32_t g : {0u, 1u}) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        std::vector<float> values = input(*compiled, g, rank, i);
        engine.submit(g, lend(values)).wait();
        if (!same_bits(values, means[i][g])) throw std::runtime_error("wrong");
      }
    }
  }));
}

TEST_CASE("several threads submit at once") {
  const std::vector<std::int64_t> sizes(12, 700);
  const auto compiled = compile_all(sizes, "ps", 2, "onebit");
  require_none(run_ranks(
      2,
      [&](transport::Endpoint& endpoint) {
        const auto rank = static_cast<std::uint32_t>(endpoint.rank());
        Engine engine(endpoint, compiled, {.seed = kSeed});
        Expected expected(*compiled, rank);
        std::vector<std::vector<std::vector<float>>> means;
        for (int i = 0; i < 6; ++i) means.push_back(expected.next());
        std::vector<std::future<void>> threads;
        for (std::uint32_t t = 0; t < 3; ++t) {
          threads.push_back(std::async(std::launch::async, [&, t] {
            for (std::uint64_t i = 0; i < 6; ++i) {
              std::vector<std::vector<float>> values(4);
              std::vector<Work> works;
              for (std::uint32_t k = 0; k < 4; ++k) {
                const std::uint32_t g = t * 4 + (rank == 0 ? k : 3 - k);
                values[k] = input(*compiled, g, rank, i);
                works.push_back(engine.submit(g, lend(values[k])));
              }
              for (std::uint32_t k = 0; k < 4; ++k) {
                works[k].wait();
                const std::uint32_t g = t * 4 + (rank == 0 ? k : 3 - k);
                if (!same_bits(values[k], means[i][g])) throw std::runtime_error("wrong");
              }
            }
          }));
        }
        for (std::future<void>& thread : threads) thread.get();
      },
      "tcp"));
}

TEST_CASE("two engines in one job do not meet") {
  const auto first = compile_all({300}, "ps", 2, "onebit");
  const auto second = compile_all({40, 50}, "ring", 2, "raw");
  require_none(run_ranks(2, [&](transport::Endpoint& endpoint) {
    const auto rank = static_cast<std::uint32_t>(endpoint.rank());
    Engine one(endpoint, first, {.seed = kSeed}), other(endpoint, second, {.seed = kSeed});
    Expected of_one(*first, rank), of_other(*second, rank);
    for (std::uint64_t i = 0; i < 3; ++i) {
      if (!wrong_in(one, of_one, rank, i).empty() || !wrong_in(other, of_other, rank, i).empty()) {
        throw std::runtime_error("wrong");
      }
    }
  }));
}

TEST_CASE("half-precision tensors end with fp32's means, rounded once") {
  const auto type = GENERATE(models::Dtype::kFloat16, models::Dtype::kBfloat16);
  constexpr std::size_t kCount = 5001;  // an odd number that takes several tiles
  plans::ResolvedPlan plan = make_plan(make_model({kCount}), "ring", 2, 2, nullptr);
  const auto wide = compile({{.name = "g", .elements = kCount}}, plan);
  const auto half = compile({{.name = "g", .elements = kCount, .type = type}}, plan);
  require_none(run_ranks(2, [&](transport::Endpoint& endpoint) {
    std::vector<float> values = input(*wide, 0, static_cast<std::uint32_t>(endpoint.rank()), 0);
    // The numbers are aligned to 2 bytes only. The words before and behind them must not change.
    std::vector<std::uint16_t> codes(kCount + 2, 0xabcd);
    narrow(values, type, codes.data() + 1);
    widen(codes.data() + 1, type, values);
    Engine of_fp32(endpoint, wide, {}), of_half(endpoint, half, {});
    of_fp32.submit(0, lend(values)).wait();
    of_half
        .submit(
            0,
            {.data = codes.data() + 1, .elements = static_cast<std::int64_t>(kCount), .type = type})
        .wait();
    std::vector<std::uint16_t> expected(kCount + 2, 0xabcd);
    narrow(values, type, expected.data() + 1);
    if (codes != expected) throw std::runtime_error("other codes than expected");
  }));
}

TEST_CASE("tensors on a GPU are read after their events, and written before their works are done") {
  const auto type = GENERATE(models::Dtype::kFloat32, models::Dtype::kBfloat16);
  plans::ResolvedPlan plan = make_plan(make_model({300, 40, 50}), "ring", 2, 2, nullptr);
  plan.plan.bulk_groups = {{1, 2}};
  const auto compiled = compile({{.name = "a", .elements = 300},
                                 {.name = "b", .elements = 40, .type = type},
                                 {.name = "c", .elements = 50}},
                                plan);
  require_none(run_ranks(2, [&](transport::Endpoint& endpoint) {
    const auto rank = static_cast<float>(endpoint.rank());
    FakeDevice device({.seed = static_cast<unsigned>(endpoint.rank())});
    Engine engine(endpoint, compiled, {.device = &device});
    for (int iteration = 0; iteration < 5; ++iteration) {
      // a and b are on the "GPU"; c is on the host, grouped with b. The mean of 1 and 3 is 2.
      std::vector<float> a(300), b(40), c(50, 1 + 2 * rank);
      std::vector<std::uint16_t> codes(40);
      std::atomic<bool> a_is_there = false, b_is_there = false;
      void* const memory_of_b = type == models::Dtype::kFloat32 ? static_cast<void*>(b.data())
                                                                : static_cast<void*>(codes.data());
      const Work of_a = engine.submit(
          0, {.data = a.data(), .elements = 300, .on_device = true, .event = &a_is_there});
      const Work of_b = engine.submit(1, {.data = memory_of_b,
                                          .elements = 40,
                                          .type = type,
                                          .on_device = true,
                                          .event = &b_is_there});
      const Work of_c = engine.submit(2, lend(c));
      if (of_a.done() || of_b.done() || of_c.done()) throw std::runtime_error("not waited for");
      // Streams are first in, first out, so b waits for a's event, too.
      std::ranges::fill(b, 1 + 2 * rank);
      narrow(b, type, memory_of_b);
      b_is_there = true;
      std::ranges::fill(a, 1 + 2 * rank);
      a_is_there = true;
      of_a.wait();
      of_b.wait();
      of_c.wait();
      widen(memory_of_b, type, b);
      if (a != std::vector<float>(300, 2) || b != std::vector<float>(40, 2) ||
          c != std::vector<float>(50, 2)) {
        throw std::runtime_error("wrong values");
      }
    }
  }));
}

TEST_CASE("what follows a work may submit again") {
  const auto compiled = compile_all({64}, "ring", 2, "raw");
  require_none(run_ranks(2, [&](transport::Endpoint& endpoint) {
    Engine engine(endpoint, compiled, {});
    // The first mean is (1 + 2) / 2; after it, both ranks have the same values.
    std::vector<float> values(64, static_cast<float>(1 + endpoint.rank()));
    std::promise<int> over;
    int count = 0;
    std::function<void(std::exception_ptr)> again = [&](const std::exception_ptr& error) {
      if (error || ++count == 10) return over.set_value(count);
      engine.submit(0, lend(values)).then(again);
    };
    engine.submit(0, lend(values)).then(again);
    if (over.get_future().get() != 10) throw std::runtime_error("ended early");
    if (values != std::vector<float>(64, 1.5f)) throw std::runtime_error("wrong values");
    bool called = false;
    const Work last = engine.submit(0, lend(values));
    last.wait();
    last.then([&](const std::exception_ptr& error) { called = error == nullptr; });
    if (!called || !last.done()) throw std::runtime_error("not called at once");
  }));
}

TEST_CASE("an engine refuses tensors that are not the gradient's") {
  const auto compiled = compile_all({64, 32}, "ring", 1, "raw");
  require_none(run_ranks(1, [&](transport::Endpoint& endpoint) {
    Engine engine(endpoint, compiled, {});
    std::vector<float> values(64);
    const Tensor right = lend(values);
    const auto refusal = [&](std::uint32_t gradient, const Tensor& tensor) -> std::string {
      try {
        engine.submit(gradient, tensor);
      } catch (const std::invalid_argument& error) {
        return error.what();
      }
      return "taken";
    };
    const auto changed = [&](const std::function<void(Tensor&)>& change) {
      Tensor tensor = right;
      change(tensor);
      return refusal(0, tensor);
    };
    if (refusal(2, right) != "gradient 2 is submitted; there are 2, counted from 0" ||
        refusal(1, right).find("has 64 elements, the gradient 32") == std::string::npos ||
        changed([](Tensor& t) { t.data = nullptr; }).find("no memory") == std::string::npos ||
        changed([](Tensor& t) { t.type = models::Dtype::kFloat16; }).find("float16") ==
            std::string::npos ||
        changed([](Tensor& t) { t.on_device = true; }).find("without one") == std::string::npos) {
      throw std::runtime_error("a wrong tensor was taken, or refused in other words");
    }
    engine.submit(0, right).wait();  // the refused calls changed nothing
  }));
}

TEST_CASE("a gradient is not submitted twice at a time, nor after the end") {
  // The gradients form a group, so the first one's work waits for the second one.
  const auto compiled = compile_all({64, 32}, "ring", 1, "raw", [](casync::Plan& plan) {
    plan.bulk_groups = {{0, 1}};
  });
  require_none(run_ranks(1, [&](transport::Endpoint& endpoint) {
    Engine engine(endpoint, compiled, {});
    std::vector<float> values(64);
    const Work lonely = engine.submit(0, lend(values));
    const auto submit_fails = [&](const std::string& why) {
      try {
        engine.submit(0, lend(values));
      } catch (const std::logic_error& error) {
        return std::string(error.what()).find(why) != std::string::npos;
      }
      return false;
    };
    if (!submit_fails("its last Work is not done")) throw std::runtime_error("taken twice");
    engine.close();
    engine.close();
    if (!submit_fails("closed")) throw std::runtime_error("taken after the end");
    try {
      lonely.wait();
    } catch (const std::logic_error& error) {
      if (std::string(error.what()).find("before all gradients") != std::string::npos) return;
    }
    throw std::runtime_error("a member of a group that never began is done");
  }));
}

TEST_CASE("when a rank is lost, every wait of the others names it, and close works") {
  const std::string transport = GENERATE("memory", "tcp");
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  CAPTURE(transport, topology);
  const auto compiled = compile_all({200, 300, 400}, topology, 3, "raw");
  std::atomic<int> named = 0;
  std::latch all_done(3);
  const std::vector<std::exception_ptr> errors = run_ranks(
      3,
      [&](transport::Endpoint& endpoint) {
        Engine engine(endpoint, compiled, {});
        std::vector<std::vector<float>> values{std::vector<float>(200), std::vector<float>(300),
                                               std::vector<float>(400)};
        const auto submit = [&](std::uint32_t g) { return engine.submit(g, lend(values[g])); };
        for (const std::uint32_t g : {0u, 1u, 2u}) submit(g).wait();
        all_done.arrive_and_wait();
        if (endpoint.rank() == 2) return endpoint.abort(2, "rank 2 was killed");
        std::vector<Work> works;
        const auto count = [&](const auto& act) {
          try {
            act();
          } catch (const transport::PeerError& error) {
            if (error.culprit == 2) ++named;
          }
        };
        for (const std::uint32_t g : {0u, 1u, 2u}) {
          count([&] { works.push_back(submit(g)); });  // or the submission fails at once
        }
        for (const Work& work : works) {
          count([&] { work.wait(); });
          bool told = false;
          work.then([&](const std::exception_ptr& error) { told = culprit_of(error) == 2; });
          if (!told) throw std::runtime_error("then() was told of no failure");
        }
        count([&] { submit(0); });  // fails now at the latest
        engine.close();
        try {
          submit(0);
        } catch (const std::logic_error&) {
          return;
        }
        throw std::runtime_error("a closed engine takes gradients");
      },
      transport);
  require_none(errors);
  CHECK(named == 2 * 4);
}

/// Calls `act` and sets `over` when it has returned or thrown.
void run_and_tell(std::promise<void>& over, const std::function<void()>& act) {
  try {
    act();
  } catch (...) {
    over.set_value();
    throw;
  }
  over.set_value();
}

TEST_CASE("a rank that goes on when another has left is told who left") {
  // In a ring, rank 2 sends to rank 0 and receives from rank 1. Either of these may go on.
  const std::string transport = GENERATE("memory", "tcp");
  const std::string topology = GENERATE("ps", "ring", "allreduce");
  const int goes_on = GENERATE(0, 1);
  CAPTURE(transport, topology, goes_on);
  const auto compiled = compile_all({64}, topology, 3, "raw");
  std::latch averaged(3);
  std::promise<void> over;
  const std::shared_future<void> is_over = over.get_future().share();
  const std::vector<std::exception_ptr> errors = run_ranks(
      3,
      [&](transport::Endpoint& endpoint) {
        std::vector<float> values(64, 1.0f);
        Engine engine(endpoint, compiled, {.timeout_s = 600});
        engine.submit(0, lend(values)).wait();
        averaged.arrive_and_wait();  // so that all ranks have finished before one leaves
        if (endpoint.rank() == 2) return;
        if (endpoint.rank() != goes_on) return is_over.wait();
        run_and_tell(over, [&] { engine.submit(0, lend(values)).wait(); });
      },
      transport, 600);
  CHECK(culprit_of(errors[static_cast<std::size_t>(goes_on)]) == 2);
  // Rank 2 may have left the exchange or the whole job.
  CHECK_THAT(message_of(errors[static_cast<std::size_t>(goes_on)]), Contains("rank 2 left"));
  CHECK(message_of(errors[2]) == "no error");
  CHECK(message_of(errors[static_cast<std::size_t>(1 - goes_on)]) == "no error");
}

TEST_CASE("a rank that does not submit for the timeout is named") {
  const auto compiled = compile_all({64}, "ring", 2, "raw");
  std::promise<void> ended;
  std::future<void> other_ended = ended.get_future();
  const std::vector<std::exception_ptr> errors = run_ranks(2, [&](transport::Endpoint& endpoint) {
    std::vector<float> values(64, 1.0f);
    Engine engine(endpoint, compiled, {.timeout_s = 0.3});
    if (endpoint.rank() == 1) return other_ended.wait();
    run_and_tell(ended, [&] { engine.submit(0, lend(values)).wait(); });
  });
  CHECK(culprit_of(errors[0]) == 1);
  CHECK_THAT(message_of(errors[0]), Contains("rank 1 sent nothing for 0.3 s"));
}

TEST_CASE("a message that is damaged ends the job, and the error names its task") {
  // Codec that reports every message as damaged.
  class Refusing : public WrongCodec {
   public:
    Refusing() : WrongCodec(0) {}
    void decode(std::span<const kernels::DecodeItem>, void*) const override {
      throw std::runtime_error("the message is damaged");
    }
  };
  plans::ResolvedPlan plan = make_plan(make_model({64}), "ps", 2, 1, std::make_shared<Refusing>());
  const auto compiled = compile(make_gradients({64}), std::move(plan));
  const std::vector<std::exception_ptr> errors = run_ranks(2, [&](transport::Endpoint& endpoint) {
    std::vector<float> values(64, 1.0f);
    Engine engine(endpoint, compiled, {});
    engine.submit(0, lend(values)).wait();
  });
  CHECK_THAT(message_of(errors[0]), Contains("Decode g0") && Contains("the message is damaged"));
  CHECK(culprit_of(errors[1]) == 0);
}

TEST_CASE("what cannot be compiled is refused by name") {
  const auto refusal = [](std::vector<Gradient> gradients, const PlanChoice& choice) {
    try {
      compile(std::move(gradients), choice);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("compiled");
  };
  CHECK(refusal({{.name = "w", .elements = 3}}, {}) == "compiled");
  CHECK(refusal({{.name = "w", .elements = 3}}, {.plan = "tbq", .topology = "ps", .nodes = 3}) ==
        "compiled");
  CHECK_THAT(refusal({{.name = "", .elements = 3}}, {}), Contains("gradient 0 has no name"));
  CHECK_THAT(refusal({{.name = "w", .elements = 0}}, {}), Contains("'w'") && Contains("got 0"));
  CHECK_THAT(refusal({{.name = "w", .elements = 1}, {.name = "w", .elements = 2}}, {}),
             Contains("two gradients are named 'w'"));
  CHECK(refusal({{.name = "w", .elements = 12, .shape = {3, 4}}}, {}) == "compiled");
  CHECK(refusal({{.name = "w", .elements = 13, .shape = {3, 4}}}, {}) ==
        "gradient 'w': shape 3x4 has 12 elements, but elements says 13; correct one of them, or "
        "leave the shape out");
  CHECK_THAT(refusal({{.name = "w", .elements = 12, .shape = {-3, -4}}}, {}),
             Contains("gradient 'w': shape -3x-4: each dimension must be at least 1"));
  CHECK_THAT(refusal({{.name = "w", .elements = 3}}, {.plan = "none", .topology = "star"}),
             Contains("ring"));
  CHECK_THAT(refusal({{.name = "w", .elements = 3}}, {.plan = "no-such-plan"}),
             Contains("no-such-plan"));
}

TEST_CASE("a compiled gradient keeps its shape") {
  const auto matrix = compile({{.name = "w", .elements = 12, .shape = {3, 4}}}, PlanChoice{});
  const auto vector = compile({{.name = "w", .elements = 12}}, PlanChoice{});
  CHECK(matrix->model.gradients[0].shape == std::vector<std::int64_t>{3, 4});
  CHECK(vector->model.gradients[0].shape.empty());
  CHECK(matrix->fingerprint != vector->fingerprint);
}

TEST_CASE("an engine is for as many ranks as its plan") {
  const auto compiled = compile_all({64}, "ring", 2, "raw");
  const auto errors = run_ranks(
      1, [&](transport::Endpoint& endpoint) { const Engine engine(endpoint, compiled, {}); });
  CHECK(message_of(errors[0]) == "the plan is for 2 ranks, the job has 1");
}

TEST_CASE("small gradients of a named plan travel together where that is asked for") {
  const auto gradients = [] {
    std::vector<Gradient> made = make_gradients({10, 20, 400, 30, 40, 50});
    made[4].type = models::Dtype::kBfloat16;
    return made;
  };
  const auto members = [&](const PlanChoice& choice) {
    const auto compiled = compile(gradients(), choice);
    const casync::Layout layout = casync::make_layout(compiled->model, compiled->plan.plan);
    std::vector<std::vector<std::uint32_t>> found;
    for (const std::uint32_t unit : layout.order) found.push_back(layout.units[unit].members);
    return found;
  };
  using Members = std::vector<std::vector<std::uint32_t>>;
  PlanChoice choice{.plan = "none", .nodes = 2};
  CHECK(members(choice) == Members{{0}, {1}, {2}, {3}, {4}, {5}});
  choice.group_bytes = 1000;
  // Gradient 2 (1600 bytes) is too large, gradient 4 has another dtype. The group goes on after 2.
  CHECK(members(choice) == Members{{2}, {0, 1, 3}, {4}, {5}});
  choice.plan = "fp16";
  CHECK(members(choice) == Members{{2}, {0, 1, 3, 4, 5}});
  choice.plan = "none";
  choice.group_bytes = 130;
  CHECK(members(choice) == Members{{0, 1}, {2}, {3}, {4}, {5}});
  choice.plan = "threshold:25";
  choice.algorithm = "onebit";
  CHECK(members(choice) == Members{{0, 1}, {2}, {3}, {4}, {5}});
  choice.plan = "onebit";
  CHECK(members(choice) == Members{{0}, {1}, {2}, {3}, {4}, {5}});
}

TEST_CASE("no bulk group has gradients of two fragments") {
  std::vector<Gradient> gradients = make_gradients({10, 20, 30, 40, 50, 60});
  const auto members = [](const Compiled& compiled) {
    const casync::Layout layout = casync::make_layout(compiled.model, compiled.plan.plan);
    std::vector<std::vector<std::uint32_t>> found;
    for (const std::uint32_t unit : layout.order) found.push_back(layout.units[unit].members);
    return found;
  };
  using Members = std::vector<std::vector<std::uint32_t>>;
  const PlanChoice choice{.plan = "none", .nodes = 2, .group_bytes = 10000};
  // This plan has a rule for groups of up to 1000 bytes. Gradients 0 to 5 together have 840.
  plans::ResolvedPlan ruled = compile(gradients, PlanChoice{.plan = "none", .nodes = 2})->plan;
  ruled.plan.bulk = {.threshold_bytes = 1000, .limit_bytes = 1000};
  CHECK(members(*compile(gradients, choice)) == Members{{0, 1, 2, 3, 4, 5}});
  CHECK(members(*compile(gradients, ruled)) == Members{{0, 1, 2, 3, 4, 5}});
  // Fragment 0 has gradients 0, 2 and 4, fragment 1 has 1 and 3, and fragment 2 only gradient 5.
  gradients[1].fragment = gradients[3].fragment = 1;
  gradients[5].fragment = 2;
  CHECK(members(*compile(gradients, choice)) == Members{{1, 3}, {0, 2, 4}, {5}});
  CHECK(members(*compile(gradients, ruled)) == Members{{1, 3}, {0, 2, 4}, {5}});
}

TEST_CASE("a plan for local updates is for gradients of fragments alone") {
  std::vector<Gradient> gradients = make_gradients({10, 20, 30});
  plans::ResolvedPlan plan = compile(gradients, PlanChoice{.plan = "none", .nodes = 2})->plan;
  plan.plan.schedule = casync::Schedule::parse("local(steps=20)");
  CHECK_THROWS_WITH(compile(gradients, plan),
                    Contains("schedule local(steps=20)") && Contains("plan for schedule ddp"));
  for (Gradient& gradient : gradients) gradient.fragment = 0;
  CHECK(compile(gradients, plan)->plan.plan.schedule == casync::Schedule());
}
