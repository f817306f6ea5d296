// A program outside of the project that synchronises 50 gradients between four processes. Three
// threads of each process submit them, each in a random order, and several iterations are under way
// at a time. Each rank must get exactly the bits of the serial reference with which hipress-exec
// verifies. With "kill", rank 2 is killed halfway, and every wait of the other ranks must name it.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "replay/inputs.hpp"
#include "replay/reference.hpp"
#include "runtime/engine.hpp"
#include "transport/endpoint.hpp"

namespace {

using namespace hipress;

constexpr int kRanks = 4, kThreads = 3, kVictim = 2;
constexpr std::uint32_t kGradients = 50;
constexpr std::uint64_t kIterations = 20, kSeed = 7;
constexpr int kKilledAt = 120;  // submissions of one thread

std::vector<runtime::Gradient> make_gradients() {
  std::mt19937 random(1);
  std::vector<runtime::Gradient> gradients;
  for (std::uint32_t g = 0; g < kGradients; ++g) {
    const auto rows = static_cast<std::int64_t>(1 + random() % 5000);
    gradients.push_back(
        {.name = fmt::format("layer{}.weight", g), .elements = rows, .shape = {rows, 1}});
  }
  return gradients;
}

/// Plan with five algorithms, with and without states and draws, and with one to four partitions.
/// Small gradients are grouped.
std::shared_ptr<const runtime::Compiled> make_plan(const std::string& topology) {
  plans::ResolvedPlan plan;
  plan.plan.topology = topology;
  plan.plan.nodes = kRanks;
  plan.plan.bulk.threshold_bytes = 2000;
  plan.plan.bulk.limit_bytes = 6000;
  for (const char* name : {"onebit", "terngrad", "tbq", "dgc(rho=0.1)", "fp16"}) {
    const std::shared_ptr<const kernels::Codec> codec = kernels::make_codec(name);
    plan.plan.algorithms.push_back(
        {.name = name,
         .encoded_bytes = [codec](std::int64_t elements) { return codec->encoded_bytes(elements); },
         .half_precision = codec->traits().half_precision});
    plan.codecs.push_back(codec);
  }
  for (std::uint32_t g = 0; g < kGradients; ++g) {
    plan.plan.decisions.push_back(
        {.algorithm = static_cast<std::int8_t>(static_cast<int>(g % 6) - 1),
         .partitions = static_cast<std::int32_t>(1 + g % 4)});
  }
  return runtime::compile(make_gradients(), std::move(plan));
}

/// Values that `rank` must end with, by iteration and gradient.
using Means = std::vector<std::vector<std::vector<float>>>;

Means reference_means(const runtime::Compiled& compiled, std::uint32_t rank) {
  replay::Reference reference(compiled.graph, compiled.model, compiled.plan, {.seed = kSeed});
  const casync::Layout& layout = reference.layout();
  Means means(kIterations);
  for (std::uint64_t iteration = 0; iteration < kIterations; ++iteration) {
    std::vector<std::vector<float>> units;
    for (const casync::Unit& unit : layout.units) {
      units.emplace_back(static_cast<std::size_t>(unit.elements));
    }
    for (std::size_t p = 0; p < reference.partitions().size(); ++p) {
      std::vector<float>& unit = units[reference.partitions()[p].gradient];
      reference.run(p, iteration, [&](const replay::Reference::Block& block) {
        std::copy(block.values[rank].begin(), block.values[rank].end(), unit.begin() + block.first);
      });
    }
    means[iteration].resize(kGradients);
    for (std::size_t u = 0; u < units.size(); ++u) {
      for (const casync::Member& member : casync::places(layout.units[u], compiled.model)) {
        const auto first = units[u].begin() + member.first;
        means[iteration][member.gradient].assign(first, first + member.elements);
      }
    }
  }
  return means;
}

/// Submits the gradients of one thread on one rank. Each gradient may be in another iteration.
class Submitter {
 public:
  Submitter(runtime::Engine& engine, std::uint32_t rank, int thread, const Means& means, bool kills)
      : engine_(engine),
        rank_(rank),
        random_(rank * 100 + static_cast<unsigned>(thread)),
        means_(means),
        kills_(kills) {
    for (std::uint32_t g = 0; g < kGradients; ++g) {
      if (static_cast<int>(g % kThreads) == thread)
        mine_.push_back({.gradient = g, .values = {}, .work = {}});
    }
  }

  void run() {
    while (!mine_.empty()) {
      const std::size_t at = choose();
      One& one = mine_[at];
      if (one.next > 0) finish(one);
      if (one.next == kIterations) {
        mine_.erase(mine_.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        submit(one);
      }
    }
  }

 private:
  struct One {
    std::uint32_t gradient = 0;
    std::uint64_t next = 0;  // iteration to submit
    std::vector<float> values;
    runtime::Work work;
  };

  /// Chooses a gradient whose last work is done. Waiting for one particular gradient could
  /// deadlock: the other ranks may wait for this rank to submit a different one.
  std::size_t choose() {
    std::vector<std::size_t> free;
    while (free.empty()) {
      for (std::size_t i = 0; i < mine_.size(); ++i) {
        if (mine_[i].next == 0 || mine_[i].work.done()) free.push_back(i);
      }
      if (free.empty()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return free[random_() % free.size()];
  }

  void submit(One& one) {
    if (kills_ && ++submitted_ == kKilledAt) std::raise(SIGKILL);
    const auto& expected = means_[one.next][one.gradient];
    one.values.resize(expected.size());
    replay::fill_inputs(
        {.seed = kSeed, .iteration = one.next, .node = rank_, .gradient = one.gradient}, 0,
        one.values);
    one.work = engine_.submit(
        one.gradient,
        {.data = one.values.data(), .elements = static_cast<std::int64_t>(one.values.size())});
    ++one.next;
  }

  void finish(One& one) {
    one.work.wait();
    const auto& expected = means_[one.next - 1][one.gradient];
    if (std::memcmp(one.values.data(), expected.data(), expected.size() * sizeof(float)) == 0)
      return;
    throw std::runtime_error(
        fmt::format("rank {}: gradient {} of iteration {} has other bits than the reference", rank_,
                    one.gradient, one.next - 1));
  }

  runtime::Engine& engine_;
  std::uint32_t rank_;
  std::mt19937 random_;
  const Means& means_;
  bool kills_;
  int submitted_ = 0;
  std::vector<One> mine_;
};

int run_rank(int rank, const std::string& topology, const std::string& folder, bool kill) {
  const auto compiled = make_plan(topology);
  const Means means = reference_means(*compiled, static_cast<std::uint32_t>(rank));
  const auto endpoint = transport::find_transport("tcp").connect({.rank = rank,
                                                                  .size = kRanks,
                                                                  .job = "synchronise",
                                                                  .plan = compiled->fingerprint,
                                                                  .rendezvous = "file://" + folder,
                                                                  .interface = {},
                                                                  .timeout_s = 120});
  runtime::Engine engine(*endpoint, compiled, {.seed = kSeed, .timeout_s = 120});
  std::atomic<int> failed = 0, lost = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        Submitter(engine, static_cast<std::uint32_t>(rank), t, means, kill && rank == kVictim)
            .run();
      } catch (const transport::PeerError& error) {
        if (error.culprit == kVictim)
          ++lost;
        else
          std::cerr << fmt::format("rank {}: {}\n", rank, error.what());
      } catch (const std::exception& error) {
        ++failed;
        std::cerr << fmt::format("rank {}: {}\n", rank, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine.close();
  return failed == 0 && lost == (kill ? kThreads : 0) ? 0 : 1;
}

/// True if all ranks ended as expected.
bool run_job(const std::string& topology, bool kill) {
  char folder[] = "/tmp/hipress-synchronise-XXXXXX";
  if (mkdtemp(folder) == nullptr) return false;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) std::exit(run_rank(rank, topology, folder, kill));
    children.push_back(child);
  }
  bool well = true;
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const bool as_expected = kill && rank == kVictim ? killed : status == 0;
    if (!as_expected)
      std::cerr << fmt::format("{}: rank {} ended with status {}\n", topology, rank, status);
    well = well && as_expected;
  }
  std::filesystem::remove_all(folder);
  return well;
}

}  // namespace

int main(int argc, char** argv) {
  const bool kill = argc > 1 && std::string(argv[1]) == "kill";
  for (const char* topology : {"ps", "ring"}) {
    if (!run_job(topology, kill)) return 1;
  }
  std::cout << (kill ? "every wait named rank 2\n" : "the reference's bits\n");
}
