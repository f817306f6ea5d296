// Measures the executor's overhead: the time per task in graphs of tiny tasks; the rate of a raw
// ring, compared with plain gloo streams over the same link; and the core time of our TCP, compared
// with gloo's. All are measured in the same run.
#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "bench/report.hpp"
#include "bench/wires.hpp"
#include "casync/topology.hpp"
#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "job/clock.hpp"
#include "job/gather.hpp"
#include "plans/plan_file.hpp"
#include "replay/device_choice.hpp"
#include "replay/reference.hpp"
#include "replay/replay.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"
#include "transport/endpoint.hpp"

namespace hipress::bench {
namespace {

using transport::Clock;

struct Choices {
  std::string json;
  std::string device = "cpu";
  std::string rendezvous, interface;
  std::string network = "loopback";
  double megabytes = 100;
  int rounds = 3;
};

/// Allowed time per task beyond its kernels and transfers.
constexpr double kAllowed_us = 20;
constexpr int kRanks = 4;

/// Job that is replayed.
struct Job {
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
};

Job make_job(const std::string& topology, const std::string& algorithm, std::uint32_t nodes,
             std::size_t gradients, std::int64_t elements) {
  Job job{.model = {.name = "bench", .source = {}, .unit = {}, .gradients = {}},
          .plan = {},
          .graph = {}};
  for (std::size_t g = 0; g < gradients; ++g) {
    job.model.gradients.push_back({.name = "g" + std::to_string(g), .elements = elements});
  }
  job.plan = plans::resolve_plan(
      algorithm, {.model = job.model, .topology = topology, .nodes = nodes, .algorithm = "onebit"});
  job.graph = casync::expand_to_run(job.model, job.plan.plan);
  return job;
}

// ------------------------------------------------------------------------------------ overhead

/// Number of tasks that run: all except Forward and Backward, which take no time here.
double count_tasks(const casync::TaskGraph& graph) {
  double tasks = 0;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Kind kind = graph[id].kind;
    if (kind != casync::Kind::kForward && kind != casync::Kind::kBackward) ++tasks;
  }
  return tasks;
}

/// Seconds that the codecs and sums of all tasks take in one thread, without the executor.
double reference_s(const Job& job) {
  replay::Reference reference(job.graph, job.model, job.plan, {.seed = 1});
  return seconds_of([&] {
    for (std::size_t index = 0; index < reference.partitions().size(); ++index) {
      reference.run(index, 0, [](const replay::Reference::Block&) {});
    }
  });
}

/// Measures tiny tasks that are all ready at once, so that an iteration's time is overhead. On a
/// GPU, this includes the kernels, which take longer to launch than to run.
void time_overhead(Report& report, const std::string& transport, const std::string& topology,
                   const std::string& algorithm, const replay::DeviceChoice& choice) {
  constexpr std::uint32_t kNodes = 2;
  const Job job = make_job(topology, algorithm, kNodes, 1000, 64);
  const replay::ReplayResult result =
      replay::replay_threads(transport, job.model, job.plan, job.graph,
                             {.iterations = 9, .progress = {}, .device = choice.device});
  const std::string place = choice.device ? "gpu_" + transport : transport;
  const std::string name = fmt::format("overhead.{}_{}_{}", place, topology, algorithm);
  const double tasks = count_tasks(job.graph);
  const double wall_us = 1e6 * summarise(result.iteration_s).median_s / (tasks / kNodes);
  const double cpu_us = 1e6 * summarise(result.process_cpu_s).median_s / tasks;
  report.add({name, "us/task", wall_us, "allowed", kAllowed_us});
  if (choice.device) return;  // the host's core time alone says little
  report.add({name, "cpu_us/task", cpu_us, "allowed", kAllowed_us});
  report.add({name, "cpu_us/task", cpu_us, "operations", 1e6 * reference_s(job) / tasks});
}

// ---------------------------------------------------------------------------------------- link

/// Streams between ranks over gloo's own connections.
class PlainStream {
 public:
  PlainStream(transport::Endpoint& endpoint, const std::string& interface)
      : endpoint_(endpoint), clock_(endpoint), pairs_(connect(interface)) {}

  /// Sends `bytes` to rank `to` while receiving as many from rank `from`. Returns the longest time
  /// of any rank, in seconds. Collective.
  double seconds(int to, int from, std::int64_t bytes) {
    constexpr std::int64_t kMessageBytes = 1 << 20;
    const std::int64_t messages = std::max<std::int64_t>(1, bytes / kMessageBytes);
    std::vector<std::byte> source(kMessageBytes), destination(kMessageBytes);
    const int slot = next_slot_++;
    const auto in =
        pairs_->getPair(from)->createRecvBuffer(slot, destination.data(), destination.size());
    const auto out = pairs_->getPair(to)->createSendBuffer(slot, source.data(), source.size());
    const Clock::time_point start = clock_.agree_on_start();
    std::this_thread::sleep_until(start);
    for (std::int64_t i = 0; i < messages; ++i) out->send(0, source.size(), 0);
    for (std::int64_t i = 0; i < messages; ++i) in->waitRecv();
    const double taken_s = std::chrono::duration<double>(Clock::now() - start).count();
    for (std::int64_t i = 0; i < messages; ++i) out->waitSend();
    const std::vector<double> all = job::gather(endpoint_, taken_s);
    return *std::ranges::max_element(all) * static_cast<double>(bytes) /
           static_cast<double>(messages * kMessageBytes);
  }

 private:
  std::shared_ptr<gloo::transport::Context> connect(const std::string& interface) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = interface.empty() ? "127.0.0.1" : interface;
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    auto pairs = device_->createContext(endpoint_.rank(), endpoint_.size());
    pairs->setTimeout(std::chrono::minutes(5));       // gloo leaves the timeout uninitialised
    std::vector<std::vector<std::string>> addresses;  // addresses by receiver, then by sender
    for (int peer = 0; peer < endpoint_.size(); ++peer) {
      std::vector<char> mine;
      if (peer != endpoint_.rank()) mine = pairs->createPair(peer)->address().bytes();
      addresses.push_back(endpoint_.all_gather({mine.begin(), mine.end()}));
    }
    const auto& for_me = addresses[static_cast<std::size_t>(endpoint_.rank())];
    for (int peer = 0; peer < endpoint_.size(); ++peer) {
      if (peer == endpoint_.rank()) continue;
      const std::string& theirs = for_me[static_cast<std::size_t>(peer)];
      pairs->getPair(peer)->connect({theirs.begin(), theirs.end()});
    }
    return pairs;
  }

  transport::Endpoint& endpoint_;
  job::CommonClock clock_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> pairs_;
  int next_slot_ = 0;
};

/// Rates in MB/s that each rank sends (and receives): medians over the rounds.
struct Rates {
  double ring = 0;       ///< the executor's ring, over our TCP
  double gloo_ring = 0;  ///< the executor's ring, over gloo
  double both_ways = 0;  ///< streams between pairs of ranks, in both directions
  double around = 0;     ///< streams from each rank to the next
};

/// Runs the raw ring over one endpoint. Returns its seconds, and the bytes that each rank sends.
std::pair<double, std::int64_t> run_ring(transport::Endpoint& endpoint, const Job& job,
                                         bool first) {
  const replay::ReplayResult result =
      replay::replay(endpoint, job.model, job.plan, job.graph,
                     {.warmup = first ? 1 : 0, .iterations = 1, .progress = {}});
  return {result.iteration_s.at(0), result.bytes_sent.at(0)};
}

/// Measures rings and streams in turns, with the same bytes per rank. Collective.
Rates measure_link(transport::Endpoint& endpoint, transport::Endpoint& gloo,
                   const Choices& choices) {
  const auto size = static_cast<std::uint32_t>(endpoint.size());
  const Job job =
      make_job("ring", "none", size, 1, static_cast<std::int64_t>(1e6 * choices.megabytes / 4));
  PlainStream plain(endpoint, choices.interface);
  const int rank = endpoint.rank(), ranks = endpoint.size();
  std::vector<double> ring_s, gloo_ring_s, both_ways_s, around_s;
  std::int64_t bytes = 0;
  for (int round = 0; round < choices.rounds; ++round) {
    const auto [taken_s, sent] = run_ring(endpoint, job, round == 0);
    bytes = sent;
    ring_s.push_back(taken_s);
    gloo_ring_s.push_back(run_ring(gloo, job, round == 0).first);
    both_ways_s.push_back(plain.seconds(rank ^ 1, rank ^ 1, bytes));
    around_s.push_back(plain.seconds((rank + 1) % ranks, (rank + ranks - 1) % ranks, bytes));
  }
  const auto rate = [bytes](const std::vector<double>& seconds) {
    return 1e-6 * static_cast<double>(bytes) / summarise(seconds).median_s;
  };
  return {rate(ring_s), rate(gloo_ring_s), rate(both_ways_s), rate(around_s)};
}

/// Connects one rank, and measures its part.
Rates measure_link(const transport::JobOptions& options, const Choices& choices) {
  if (options.size < 2 || options.size % 2 != 0) {
    throw io::InputError(
        fmt::format("{} ranks: the link is measured by an even number", options.size));
  }
  const auto endpoint = transport::find_transport("tcp").connect(options);
  transport::JobOptions beside = options;
  beside.job += " over gloo";
  beside.insecure = true;  // only this job uses the network
  const auto gloo = transport::find_transport("gloo").connect(beside);
  return measure_link(*endpoint, *gloo, choices);
}

Rates measure_link_of_threads(const Choices& choices) {
  std::vector<Rates> rates(kRanks);
  std::vector<std::exception_ptr> errors(kRanks);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    ranks.emplace_back([&, rank, place] {
      try {
        rates[place] = measure_link({.rank = rank,
                                     .size = kRanks,
                                     .job = "bench_replay",
                                     .plan = {},
                                     .rendezvous = "local:bench_replay",
                                     .interface = {}},
                                    choices);
      } catch (...) {
        errors[place] = std::current_exception();
      }
    });
  }
  ranks.clear();  // joins the threads
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return rates[0];
}

void add_link(Report& report, int ranks, const Choices& choices, const Rates& rates) {
  const std::string name = fmt::format("link.ring{}_{}", ranks, choices.network);
  report.add({name, "MB/s", rates.ring, "gloo_both_ways", rates.both_ways});
  report.add({name, "MB/s", rates.ring, "gloo_around", rates.around});
  report.add({name, "MB/s", rates.ring, "ring_over_gloo", rates.gloo_ring});
}

// --------------------------------------------------------------------------------------- wires

void add_wires(Report& report, int ranks) {
  const std::vector<WireFigures> figures = measure_wires({"tcp", "gloo"}, ranks, {});
  const WireFigures &ours = figures[0], &gloo = figures[1];
  const auto add = [&](const char* what, const char* metric, double WireFigures::*figure) {
    report.add({fmt::format("wire.{}{}_loopback", what, ranks), metric, ours.*figure, "gloo",
                gloo.*figure});
  };
  add("bytes", "cpu_ns/byte", &WireFigures::cpu_ns_per_byte);
  add("messages", "cpu_us/message", &WireFigures::cpu_us_per_message);
  add("latency", "us", &WireFigures::latency_us);
  add("all_reduce", "MB/s", &WireFigures::all_reduce_mb_per_s);
  add("all_reduce", "cpu_ns/byte", &WireFigures::all_reduce_cpu_ns_per_byte);
}

// ----------------------------------------------------------------------------------------- run

/// Runs one rank of a job that a launcher started. Measures only the link.
int run_rank(const io::Launch& launch, const Choices& choices) {
  if (choices.rendezvous.empty()) {
    throw io::InputError(
        fmt::format("{} started {} ranks, which need --rendezvous: "
                    "file:///shared/folder or redis://host:port",
                    launch.launcher, launch.size));
  }
  const Rates rates = measure_link({.rank = launch.rank,
                                    .size = launch.size,
                                    .job = "bench_replay",
                                    .plan = fmt::format("{} MB", choices.megabytes),
                                    .rendezvous = choices.rendezvous,
                                    .interface = choices.interface},
                                   choices);
  if (launch.rank != 0) return 0;
  Report report;
  add_link(report, launch.size, choices, rates);
  report.write(choices.json);
  return 0;
}

int run(const Choices& choices) {
  const std::optional<io::Launch> launch = io::read_launch();
  const bool reports = !launch || launch->rank == 0;
  if (reports && !choices.json.empty()) io::require_writable(choices.json);
  if (launch && launch->size > 1) return run_rank(*launch, choices);
  const replay::DeviceChoice choice =
      replay::choose_device({.device = choices.device, .ranks = 2}, launch);
  Report report;
  for (const char* const transport : {"memory", "tcp", "gloo"}) {
    for (const char* const topology : {"ps", "ring"}) {
      for (const char* const algorithm : {"none", "onebit"}) {
        time_overhead(report, transport, topology, algorithm, choice);
      }
    }
  }
  if (!choice.device) {
    for (const int ranks : {2, kRanks}) add_wires(report, ranks);
    add_link(report, kRanks, choices, measure_link_of_threads(choices));
  }
  report.write(choices.json);
  return 0;
}

}  // namespace
}  // namespace hipress::bench

int main(int argc, char** argv) {
  hipress::bench::Choices choices;
  return hipress::tools::run_tool(
      argc, argv,
      {"bench_replay",
       "Times the executor's tasks, and its raw ring beside plain gloo streams: as threads over "
       "loopback, or, started by a launcher, the ring alone on the network between the ranks.",
       "bench_replay --json bench_replay.json"},
      [&](CLI::App& app) {
        app.add_option("--json", choices.json, "also write the rows to this file");
        app.add_option("--device", choices.device,
                       "cpu, or cuda: only the time per task, of ranks that share the GPU")
            ->check(CLI::IsMember({"cpu", "cuda"}))
            ->capture_default_str();
        app.add_option("--rendezvous", choices.rendezvous,
                       "rendezvous of a job's processes: file:///shared/folder");
        app.add_option("--interface", choices.interface, "address to use; default: loopback");
        app.add_option("--network", choices.network, "name of the network, for the rows")
            ->capture_default_str();
        app.add_option("--megabytes", choices.megabytes,
                       "size of the ring's gradient, in 10^6 bytes")
            ->check(hipress::tools::number_from(1, 1e5))
            ->capture_default_str();
        app.add_option("--rounds", choices.rounds, "number of turns of ring and streams")
            ->check(hipress::tools::count_from(1, 1000))
            ->capture_default_str();
      },
      [&] { return hipress::bench::run(choices); });
}
