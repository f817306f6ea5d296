#include "costs/collective_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>

#include "costs/gloo_model.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::costs {
namespace {

constexpr double kMicro = 1e-6, kGiga = 1e9;

/// Protocols, in the order of NCCL's tables. LL sends a flag with every 4 bytes, LL128 with every
/// 120. Simple fills a buffer and signals once.
enum Protocol : std::uint8_t { kLL, kLL128, kSimple, kProtocols };
constexpr std::array<std::string_view, kProtocols> kProtocolNames = {"LL", "LL128", "Simple"};

constexpr int kModelledGenerations = 4;  ///< volta, ampere, hopper, blackwell
using ByProtocol = std::array<double, kProtocols>;
using ByGeneration = std::array<double, kModelledGenerations>;

// Constants of this model, fitted to the tables in docs/collectives.md. Rates: 10^9 bytes per
// second.

/// Times of the launch, of a step to a GPU of the same host, and of a step to another host without
/// the network's latency.
constexpr ByProtocol kLaunch_us = {8, 19, 24}, kHop_us = {1.8, 3.5, 4.4}, kPost_us = {1.5, 5.5, 14};
/// Time of a tree's step within a host.
constexpr ByProtocol kTreeHop_us = {1.8, 1.9, 4.4};
/// Share of NVLink's rate that rings reach, and the time for reading and writing a byte, in ps.
constexpr ByGeneration kRingShare = {0.88, 0.976, 0.844, 0.87}, kTouch_ps = {0, 1.65, 0.18, 0.1};
/// Share of NVLink's rate that trees reach; a GPU receives each byte twice.
constexpr double kTreeShare = 0.8;
/// Share of NVLink's rate that NVLS reaches; each GPU moves 1 + 1/n of the bytes.
constexpr ByGeneration kSwitchShare = {0, 0, 0.675, 0.58};
constexpr ByGeneration kSwitchFill_us = {0, 0, 5, 9};
constexpr double kSwitchLaunch_us = 29;
/// Maximum bandwidth of protocol LL within a host, and between hosts with Intel's and with other
/// processors.
constexpr ByGeneration kLowLatency = {20, 40, 75, 100};
constexpr double kLowLatencyIntel = 39, kLowLatencyOther = 30;
/// Share of the rate that LL128 reaches within a host, and between hosts.
constexpr ByGeneration kWordsInHost = {0.75, 0.77, 0.92, 0.8};
constexpr double kWordsBetween = 0.9;
/// Time until the pipeline of protocol Simple between hosts is full: a constant and a number of
/// latencies. With NVLS trees, which adapt the size of chunks, the same for one chunk.
constexpr double kFill_us = 160, kFillLatencies = 12;
constexpr double kChunk_us = 5.5, kChunkLatencies = 2;
/// Time of a chunk that fills the pipeline: for LL128 in trees, and for LL, whose small buffers
/// limit the fill time to kMostFlags_us.
constexpr double kWordsChunk_us = 6;
constexpr double kFlagsChunk_us = 24, kMostFlags_us = 30;
/// Rate of NVLS trees inside a host, relative to NVLS.
constexpr double kSwitchTreeShare = 0.97;
/// Overhead of each message of an all-to-all.
constexpr double kMessage_us = 2;

/// Inputs of the model for one collective.
struct Setting {
  const Machine& machine;
  Ranks ranks;
  Operation operation;
  double bytes;

  double n() const { return ranks.gpus; }
  double hosts() const { return ranks.hosts; }
  bool spans_hosts() const { return ranks.hosts > 1; }
  std::size_t generation() const { return static_cast<std::size_t>(machine.generation->index); }
  /// Steps of a ring; an all-reduce has twice as many as an all-gather.
  double steps() const {
    if (operation == Operation::kBroadcast) return n();
    return (operation == Operation::kAllReduce ? 2 : 1) * (n() - 1);
  }
  /// Bytes that pass each link of a ring, per byte of the collective.
  double ring_load() const { return operation == Operation::kBroadcast ? 1 : steps() / n(); }
  double steps_between() const {
    if (!spans_hosts()) return 0;
    return operation == Operation::kBroadcast ? hosts() - 1 : steps() * (hosts() - 1) / (n() - 1);
  }
  /// Number of levels of a binary tree over the hosts, without the root's.
  double levels() const { return std::bit_width(ranks.hosts - 1); }
  /// Number of times that a host sends each byte in a double binary tree over the hosts. Every host
  /// is a leaf of one tree, and an inner node with up to two children in the other.
  double tree_load() const { return hosts() == 2 ? 1 : hosts() == 3 ? 1.5 : 2; }
  /// Rate of the cards of one host that belong to its `ranks`, in GB/s.
  double cards_gb() const {
    return ranks.host_bandwidth.value_or(machine.host_bandwidth()) / kGiga * ranks.per_host() /
           machine.gpus;
  }
  double nvlink_gb() const { return machine.bandwidth_among(ranks.per_host()) / kGiga; }
  double latency_us() const { return ranks.latency_s.value_or(machine.network_latency_s) / kMicro; }
  bool can(Protocol protocol) const {
    if (protocol != kLL128) return true;
    return machine.fabric->is_nvlink && (!spans_hosts() || machine.network->keeps_words);
  }
  bool has_switch() const {
    return machine.fabric->is_nvlink && machine.fabric->switch_multicasts &&
           kSwitchShare[generation()] > 0 && (!spans_hosts() || machine.network->has_nvls_tree) &&
           ranks.per_host() > 1;
  }
};

// NCCL's own tuning model, with which it chooses a way.

struct Tuning {
  std::array<double, 3> nvlink, pcie, net;  ///< latency of a step, by protocol
};
constexpr ByProtocol kTreeBase = {6.8, 14, 8.4}, kRingBase = {6.6, 14, 8.4};
constexpr Tuning kTreeTuning = {{0.6, 1.25, 4}, {1, 1.9, 4}, {5, 8.5, 14}};
constexpr Tuning kRingTuning = {{0.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}};
/// Maximum bandwidth of LL. Columns: 1, 2 or more hosts. Rows: on one host, the generation; on
/// several, the processor (row 0: Intel, row 1: AMD).
constexpr double kMostLL[4][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
constexpr ByGeneration kRingWords = {20, 20, 36.7, 40};  ///< per channel
constexpr double kTreeWords[4][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
constexpr double kTreeMost[4][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
constexpr double kSwitchTreeMost[4][3] = {{0, 0, 0}, {0, 0, 0}, {0, 57.7, 45.5}, {0, 96, 80}};
constexpr ByGeneration kSwitchEfficiency = {0, 0, 0.85, 0.74}, kChannels = {12, 24, 16, 16};
/// Factors of the rate of trees for sizes of 64 · 2^i bytes.
constexpr double kTreeCorrection[kProtocols][23] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};
constexpr double kPlannedCardShare = 0.96, kSwitchPlan_us = 25, kSwitchNet_us = 14;

double tree_correction(Protocol protocol, double bytes) {
  if (bytes < 64) return 1;
  const auto place = static_cast<std::size_t>(std::log2(bytes / 64));
  return place < std::size(kTreeCorrection[protocol]) ? kTreeCorrection[protocol][place] : 1;
}

struct Planner {
  const Setting& at;

  std::size_t size_class() const { return std::min<std::size_t>(at.ranks.hosts, 3) - 1; }
  double nvlink() const { return at.nvlink_gb() * at.machine.generation->nvlink_share; }
  double cards() const {
    const double planned = at.machine.network ? kPlannedCardShare / at.machine.network_share : 0;
    return at.cards_gb() * planned;
  }
  double bus(double of_cards) const {
    if (at.ranks.per_host() == 1) return of_cards * cards();
    return at.spans_hosts() ? std::min(nvlink(), of_cards * cards()) : nvlink();
  }
  double most_ll() const {
    const std::size_t row =
        !at.spans_hosts() ? at.generation() : static_cast<std::size_t>(at.machine.cpu == "amd");
    return kMostLL[row][size_class()];
  }
  double in_host_us(const Tuning& tuning, Protocol protocol) const {
    return (at.machine.fabric->is_nvlink ? tuning.nvlink : tuning.pcie)[protocol];
  }
  double between_us(const Tuning& tuning, Protocol protocol) const {
    if (!at.spans_hosts()) return 0;
    const double times = protocol == kSimple ? 2 : 1;
    return tuning.net[protocol] + times * at.machine.network->reported_s / kMicro;
  }

  double ring_us(Protocol protocol) const {
    double rate = bus(1);
    if (protocol == kLL) rate = std::min(most_ll(), rate / 2);
    if (protocol == kLL128) {
      rate = std::min(rate * 0.92, kChannels[at.generation()] * kRingWords[at.generation()]);
    }
    double step_us = in_host_us(kRingTuning, protocol);
    if (at.spans_hosts()) {
      const double post_us = (protocol == kSimple ? 3 : 1) * (at.machine.cpu == "amd" ? 2 : 1);
      step_us = std::max(step_us, post_us);
    }
    const Tuning& between = at.ranks.per_host() == 1 ? kTreeTuning : kRingTuning;
    double latency_us = kRingBase[protocol] + (at.steps() - at.steps_between()) * step_us +
                        at.steps_between() * between_us(between, protocol);
    if (protocol == kSimple && at.spans_hosts() && at.operation == Operation::kAllReduce) {
      latency_us *= at.generation() == 0 ? 1.9 : 1.4;
    }
    return latency_us + at.ring_load() * at.bytes / rate / 1e3;
  }

  double tree_us(Protocol protocol) const {
    const std::size_t g = at.generation();
    const double channels = kChannels[g];
    double rate =
        std::min(bus(at.hosts() == 2 ? 2 : 1) * 0.92, channels * kTreeMost[g][size_class()]);
    if (protocol == kLL) rate = std::min(rate / 3.8, most_ll());
    if (protocol == kLL128) {
      rate = std::min(rate * (at.spans_hosts() ? 120.0 / 128 : 7.0 / 9),
                      channels * kTreeWords[g][size_class()]);
    }
    rate *= 0.5 * tree_correction(protocol, at.bytes);
    const double levels = std::floor(std::log2(at.hosts()));
    const double latency_us =
        kTreeBase[protocol] + 2 * ((at.ranks.per_host() - 1) * in_host_us(kTreeTuning, protocol) +
                                   levels * between_us(kTreeTuning, protocol));
    return latency_us + at.bytes / rate / 1e3;
  }

  double switch_us() const {
    const std::size_t g = at.generation();
    double rate = nvlink() * kSwitchEfficiency[g] * (kChannels[g] - 1) / kChannels[g];
    double latency_us = kSwitchPlan_us;
    if (at.spans_hosts()) {
      rate = std::min({rate, cards() * (at.hosts() == 2 ? 2 : 1),
                       kChannels[g] * kSwitchTreeMost[g][size_class()]});
      const double levels = std::floor(std::log2(at.hosts()));
      latency_us += 2 * levels * (kSwitchNet_us + 2 * at.machine.network->reported_s / kMicro);
      if (g == 3 && at.machine.cpu != "arm") rate *= tree_correction(kSimple, at.bytes);
    }
    return latency_us + at.bytes / (rate * 5 / 6) / 1e3;
  }
};

// This model's times.

struct Clock {
  const Setting& at;

  double most_ll() const {
    if (!at.spans_hosts()) return kLowLatency[at.generation()];
    return at.machine.cpu == "intel" ? kLowLatencyIntel : kLowLatencyOther;
  }
  double words_share() const {
    return at.spans_hosts() ? kWordsBetween : kWordsInHost[at.generation()];
  }
  double reached(double bus, Protocol protocol) const {
    if (protocol == kLL) return std::min(most_ll(), bus / 2);
    return protocol == kLL128 ? bus * words_share() : bus;
  }
  double post_us(Protocol protocol) const { return kPost_us[protocol] + at.latency_us(); }
  double fill_us(Protocol protocol) const {
    if (protocol != kSimple || !at.spans_hosts()) return 0;
    return kFill_us + kFillLatencies * at.latency_us();
  }
  /// Additional time until LL's pipeline between hosts is full, for messages of that wire time.
  double flags_us(Protocol protocol, double wire_us) const {
    if (protocol != kLL || !at.spans_hosts()) return 0;
    return std::min(2 * std::sqrt(kFlagsChunk_us * wire_us), kMostFlags_us);
  }

  double ring_us(Protocol protocol) const {
    const std::size_t g = at.generation();
    const bool nvlink = at.machine.fabric->is_nvlink;
    double bus = ring_bandwidth(at.machine, at.ranks.per_host()) / kGiga;
    if (at.ranks.per_host() == 1) bus = at.cards_gb();
    if (at.spans_hosts()) bus = std::min(bus, at.cards_gb());
    const double latency_us = kLaunch_us[protocol] +
                              (at.steps() - at.steps_between()) * kHop_us[protocol] +
                              at.steps_between() * post_us(protocol);
    const double touch_us = nvlink ? at.bytes * kTouch_ps[g] * 1e-6 : 0;
    const double wire_us = at.ring_load() * at.bytes / reached(bus, protocol) / 1e3;
    return latency_us + fill_us(protocol) + touch_us + wire_us + flags_us(protocol, wire_us);
  }

  double tree_us(Protocol protocol) const {
    double bus = at.nvlink_gb() * (at.machine.fabric->is_nvlink ? kTreeShare : 1);
    if (at.ranks.per_host() == 1) bus = 2 * at.cards_gb() / at.tree_load();
    if (at.spans_hosts()) bus = std::min(bus, 2 * at.cards_gb() / at.tree_load());
    const double latency_us =
        kLaunch_us[protocol] +
        2 * ((at.ranks.per_host() - 1) * kTreeHop_us[protocol] + at.levels() * post_us(protocol));
    const double wire_us = at.bytes / (reached(bus, protocol) / 2) / 1e3;
    const bool fills = protocol == kLL128 && at.spans_hosts();
    const double words_us = fills ? kWordsChunk_us + 2 * std::sqrt(kWordsChunk_us * wire_us) : 0;
    return latency_us + fill_us(protocol) + wire_us + words_us + flags_us(protocol, wire_us);
  }

  double switch_us() const {
    const std::size_t g = at.generation();
    double rate = at.nvlink_gb() * kSwitchShare[g] / (1 + 1.0 / at.ranks.per_host());
    if (!at.spans_hosts()) {
      const double wire_us = at.bytes / rate / 1e3;
      return kSwitchLaunch_us + wire_us + kSwitchFill_us[g] +
             2 * std::sqrt(kSwitchFill_us[g] * wire_us);
    }
    rate = std::min(rate * kSwitchTreeShare, at.cards_gb() / at.tree_load());
    const double wire_us = at.bytes / rate / 1e3;
    const double chunk_us = kChunk_us + kChunkLatencies * at.latency_us();
    const double filling_us =
        std::min(chunk_us + 2 * std::sqrt(chunk_us * wire_us), fill_us(kSimple));
    return kSwitchLaunch_us + 2 * at.levels() * post_us(kLL128) + wire_us + filling_us;
  }

  /// Bytes on the wire per byte of payload.
  static double wire_factor(Protocol protocol) {
    return protocol == kLL ? 2 : protocol == kLL128 ? 128.0 / 120 : 1;
  }

  /// Sets the port shares of a way in which each GPU sends `bytes_within` within its host, and each
  /// host sends `bytes_between` to other hosts.
  void share_ports(double bytes_within, double bytes_between, Protocol protocol,
                   CollectiveWay& way) const {
    const auto share = [&](double bytes, double rate_gb) {
      const double busy_s = wire_factor(protocol) * bytes / (rate_gb * kGiga);
      return bytes > 0 ? std::min(1.0, busy_s / way.seconds) : 0;
    };
    const bool alone = at.ranks.per_host() == 1;
    way.within = alone ? 0 : share(bytes_within, at.nvlink_gb());
    way.between = at.spans_hosts() ? share(bytes_between, at.cards_gb()) : 0;
  }

  /// Time of messages between all pairs. Those between hosts share its cards; those within use
  /// NVLink.
  double messages_us() const {
    const double outside = at.n() - at.ranks.per_host(), inside = at.ranks.per_host() - 1;
    const double part = at.bytes / at.n() / 1e3;
    double wire_us = inside > 0 ? inside * part / at.nvlink_gb() : 0;
    if (outside > 0) {
      wire_us = std::max(wire_us, outside * part * at.ranks.per_host() / at.cards_gb());
    }
    return kLaunch_us[kSimple] + kMessage_us * (at.n() - 1) + at.latency_us() + wire_us;
  }
};

struct OperationRow {
  std::string_view name;
  Operation operation;
  bool has_trees;  ///< trees and NVLS, which NCCL uses by default
  bool has_rings;
};
constexpr std::array<OperationRow, 5> kOperations = {{
    {"all_reduce", Operation::kAllReduce, true, true},
    {"all_gather", Operation::kAllGather, false, true},
    {"reduce_scatter", Operation::kReduceScatter, false, true},
    {"broadcast", Operation::kBroadcast, false, true},
    {"all_to_all", Operation::kAllToAll, false, false},
}};

void check(const Machine& machine, Ranks ranks, double bytes) {
  const bool fits = ranks.hosts > 0 && ranks.gpus > 0 && ranks.gpus % ranks.hosts == 0 &&
                    ranks.per_host() <= machine.gpus;
  if (!fits || !(bytes >= 0)) {
    throw std::invalid_argument(fmt::format(
        "{} GPUs on {} hosts of machine {}: give a multiple of the hosts, at most {} on each",
        ranks.gpus, ranks.hosts, machine.name, machine.gpus));
  }
  if (ranks.hosts > 1 && machine.network == nullptr) {
    throw std::invalid_argument(
        fmt::format("machine {} has no network, so a collective has one host", machine.name));
  }
}

}  // namespace

std::vector<CollectiveWay> collective_ways(const Machine& machine, Ranks ranks, Operation operation,
                                           double bytes) {
  check(machine, ranks, bytes);
  if (ranks.gpus == 1) return {{.algorithm = "none", .protocol = kProtocolNames[kSimple]}};
  if (machine.library == Library::kGloo) return gloo_ways(machine, ranks, operation, bytes);
  const Setting at = {machine, ranks, operation, bytes};
  const Planner planner = {at};
  const Clock clock = {at};
  std::vector<CollectiveWay> ways;
  const double each = ranks.per_host();
  const double inside = ranks.hosts > 1 ? (each - 1) / each : 1;  // share of steps within a host
  const auto add = [&](std::string_view algorithm, Protocol protocol, double planned_us,
                       double taken_us, double load_within, double load_between) {
    CollectiveWay& way = ways.emplace_back(
        CollectiveWay{algorithm, kProtocolNames[protocol], planned_us * kMicro, taken_us * kMicro});
    clock.share_ports(load_within * bytes, load_between * bytes, protocol, way);
  };
  const OperationRow& row = kOperations[static_cast<std::size_t>(operation)];
  if (!row.has_rings) {
    add("p2p", kSimple, clock.messages_us(), clock.messages_us(), (each - 1) / at.n(),
        each * (at.n() - each) / at.n());
    return ways;
  }
  for (const Protocol protocol : {kLL, kLL128, kSimple}) {
    if (!at.can(protocol)) continue;
    add("ring", protocol, planner.ring_us(protocol), clock.ring_us(protocol),
        inside * at.ring_load(), at.ring_load());
    if (row.has_trees) {
      add("tree", protocol, planner.tree_us(protocol), clock.tree_us(protocol), 2 * inside,
          at.tree_load());
    }
  }
  if (row.has_trees && at.has_switch()) {
    add(at.spans_hosts() ? "nvls_tree" : "nvls", kSimple, planner.switch_us(), clock.switch_us(),
        1 + 1 / each, at.tree_load());
  }
  return ways;
}

double ring_bandwidth(const Machine& machine, std::uint32_t gpus_of_host) {
  const auto generation = static_cast<std::size_t>(machine.generation->index);
  return machine.bandwidth_among(gpus_of_host) *
         (machine.fabric->is_nvlink ? kRingShare[generation] : 1);
}

CollectiveWay collective_time(const Machine& machine, Ranks ranks, Operation operation,
                              double bytes, std::string_view algorithm, std::string_view protocol) {
  const std::vector<CollectiveWay> ways = collective_ways(machine, ranks, operation, bytes);
  const CollectiveWay* best = nullptr;
  std::string known;
  for (const CollectiveWay& way : ways) {
    known += fmt::format("{}{}/{}", known.empty() ? "" : ", ", way.algorithm, way.protocol);
    if (!algorithm.empty() && way.algorithm != algorithm) continue;
    if (!protocol.empty() && way.protocol != protocol) continue;
    if (best == nullptr || way.planned_s < best->planned_s) best = &way;
  }
  if (best != nullptr) return *best;
  throw io::InputError(fmt::format(
      "{} GPUs on {} hosts of machine {} have no {}: give one of {}", ranks.gpus, ranks.hosts,
      machine.name, io::quote(std::string(algorithm.empty() ? protocol : algorithm)), known));
}

Operation operation_named(std::string_view name) {
  std::string known;
  for (const OperationRow& row : kOperations) {
    if (row.name == name) return row.operation;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw io::InputError(
      fmt::format("collective must be one of {}, got {}", known, io::quote(std::string(name))));
}

}  // namespace hipress::costs
