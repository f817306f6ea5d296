#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costs/curve.hpp"
#include "costs/machine.hpp"
#include "costs/overlap.hpp"
#include "costs/spread.hpp"
#include "costs/stage_costs.hpp"

// Example: seconds to encode, send and decode a slice of 2^20 elements.
//
//   const costs::Profile profile = costs::read_profile("sosp21");
//   const costs::CodecCosts codec = profile.codec("onebit");
//   const std::int64_t elements = 1 << 20;
//   const double bytes = elements / 8.0;
//   const double encode_s = codec.encode_s(elements, /*quotients=*/false);
//   const costs::LinkCosts& link = profile.link;
//   const double send_s = link.overhead_s + bytes / link.bandwidth + link.latency_s;
//   const double decode_s = codec.decode(elements);

namespace hipress::costs {

/// Costs of one algorithm on one device; x is the number of elements of a slice. `encode` includes
/// the algorithm's default error feedback, as in a replay. Algorithms with additive messages have
/// costs of stages instead of curves.
struct CodecCosts {
  Curve encode;
  Curve decode;
  Curve decode_add;
  /// Factor of `encode` if it also divides the values by a number that is not a power of two
  /// (casync::encodes_quotients()).
  double encode_factor_quotients = 1;
  /// Mean length of a message in a sample, divided by its upper bound; 1 if messages do not vary.
  double message_share = 1;
  std::vector<StageCosts> stages = {};  ///< costs of the encodes; their work: encode_work()
  StageCosts decode_stages = {};        ///< cost of the last decode; its work: decode_work()
  bool operator==(const CodecCosts&) const = default;

  /// Costs with the times of encodes and decodes multiplied by factors.
  CodecCosts times(double encode_factor, double decode_factor) const;
  CodecCosts times(double factor) const { return times(factor, factor); }

  /// Time of an encode in seconds.
  double encode_s(std::int64_t elements, bool quotients) const {
    return encode(elements) * (quotients ? encode_factor_quotients : 1);
  }
};

/// Costs of a network interface, and of the path between two interfaces.
struct LinkCosts {
  double overhead_s = 0;           ///< o: time per message, occupies both ports
  double bandwidth = 0;            ///< B, bytes per second one way
  double bandwidth_both_ways = 0;  ///< bytes per second each way if both directions are busy
  double latency_s = 0;            ///< L: time on the wire, occupies no resource
  double core_s_per_byte = 0;      ///< CPU time per byte, both ends together
  double core_s_per_message = 0;   ///< CPU time per message, both ends together
  /// Factor of core_s_per_byte for messages that interrupt long codec tasks (casync::kOfLongSlice).
  double core_factor_interrupting = 1;
  std::int64_t burst_bytes = 0;  ///< bytes that a port sends without delay after idling; 0: no
                                 ///< burst
  /// Spread of a collective's ranks over hosts of Profile::machine.
  struct Span {
    std::uint32_t hosts = 0;    ///< number of hosts, with equally many ranks each; 0: unknown
    std::uint32_t rails = 1;    ///< number of GPUs per rank, which share its bytes
    double host_bandwidth = 0;  ///< bandwidth of all cards of a host, bytes per second
    bool operator==(const Span&) const = default;
  };
  Span span = {};
  bool operator==(const LinkCosts&) const = default;

  /// Sets the bandwidth of a different network, the same for both directions at once. Removes the
  /// burst, which belongs to the measured network.
  void set_bandwidth(double bytes_per_s) {
    bandwidth = bandwidth_both_ways = bytes_per_s;
    burst_bytes = 0;
  }
  /// CPU time of a message in seconds, both ends together.
  double core_s(double bytes, bool interrupting) const {
    return core_s_per_message + core_s_of_byte(interrupting) * bytes;
  }
  double core_s_of_byte(bool interrupting) const {
    return core_s_per_byte * (interrupting ? core_factor_interrupting : 1);
  }
};

/// Measured times by number of nodes, such as those of gathers and scatters (x: bytes per sender).
using GatherCosts = std::map<int, Curve>;

/// Parameters of the estimate for algorithms that the profile does not list (costs/traffic.hpp).
struct KernelEstimate {
  double share_of_memory = 0;  ///< share of the memory bandwidth that kernels reach, in (0, 1]
  double first_launch_s = 0;   ///< launch of the first kernel
  double next_launch_s = 0;    ///< launch of each kernel that follows on the same stream
  bool operator==(const KernelEstimate&) const = default;
};

/// Costs on named hardware: profile.yaml, schema hipress.profile/1 (docs/profiles.md lists the
/// keys).
struct Profile {
  std::string name;             ///< "sosp21"
  std::string source;           ///< "measured", or the origin of the numbers
  std::string hardware;         ///< "AMD EPYC, 2 cores", "V100"
  std::string fingerprint;      ///< hash of the file
  std::string device = "cpu";   ///< device of the kernels
  double memory_bandwidth = 0;  ///< the device's, bytes per second
  /// Memory bandwidth at which the kernels were measured, bytes per second; 0: unknown.
  double kernels_measured_at = 0;
  int cores = 0;             ///< cores of the host; 0: cores are not a shared resource
  double core_turn_s = 0;    ///< time slice of codec threads while other threads wait
  bool shared_host = false;  ///< measured with all ranks on one machine (loopback)
  std::map<std::string, CodecCosts> codecs;
  std::optional<KernelEstimate> estimate;  ///< unset: algorithms not in `codecs` have no costs
  Curve merge;                             ///< addition of raw fp32, x in elements
  LinkCosts link;
  double link_rate = 0;  ///< nominal rate of the link, bytes per second; 0: unknown
  OverlapFactors overlap;
  GatherCosts fan_in, fan_out;  ///< empty: not measured
  GatherCosts all_reduce;       ///< a library's all-reduce; x: bytes per node; empty: not measured
  /// A library's collectives; x: bytes of all shards together; empty: not measured.
  GatherCosts all_gather, reduce_scatter, all_to_all;
  /// Hosts for the model of unmeasured collectives; not a key of the file.
  std::optional<Machine> machine = {};
  std::optional<Spread> spread;    ///< unset: not measured; spread_of() then assumes one
  Probes probes;                   ///< probes to detect drift
  std::vector<std::string> notes;  ///< caveats for readers
  struct Series {                  ///< samples of a fitted curve
    std::string name;              ///< "onebit.encode"
    std::vector<Sample> samples;
    double median_relative_residual = 0;
    double max_relative_residual = 0;
    bool operator==(const Series&) const = default;
  };
  std::vector<Series> samples;

  /// Costs of an algorithm, with or without its parameters ("tbq", "tbq(tau=0.25)"). For a
  /// sparsifier they are interpolated between rows of different densities (costs/density.hpp). An
  /// algorithm without a row has estimated_costs() (costs/traffic.hpp). Throws InputError that
  /// lists the profile's algorithms if there are no costs.
  CodecCosts codec(const std::string& algorithm) const;

  /// Name of the row in `codecs` that codec() uses: the algorithm's own, or one with other
  /// parameters. If codec() interpolates, the nearer row. Empty if there is no row.
  std::string row_of(const std::string& algorithm) const;

  bool operator==(const Profile&) const = default;
};

/// Reads a profile file, or a shipped profile by its name ("sosp21"; a file of that name is
/// "./sosp21"). Throws InputError with file and line if it is unreadable or truncated, has a
/// different schema, or if a value is unknown, missing, without unit, negative or not finite.
Profile read_profile(const std::string& path_or_name);

/// Names of the shipped and the starter profiles, in alphabetic order.
std::vector<std::string> profile_names();

/// Writes a profile so that read_profile() returns an equal one, with bit-identical numbers, except
/// for `fingerprint` and the costs that `estimate` adds. Throws InputError if the folder is not
/// writable, or for a value that read_profile() refuses.
void write_profile(const std::string& path, const Profile& profile);

}  // namespace hipress::costs
