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

namespace hipress::costs {

/// Costs of one algorithm on one device; x is elements of the slice. `encode` is as a replay runs
/// it, with the error feedback that is the algorithm's default. Where messages are additive there
/// are costs of stages, and empty curves.
struct CodecCosts {
  Curve encode;
  Curve decode;
  Curve decode_add;
  double encode_factor_quotients = 1;  ///< times `encode`: of values that are divided by a number
                                       ///< that is no power of two (casync::encodes_quotients)
  /// What a message comes to, as a share of the most that it can; of algorithms whose messages vary
  /// with the data, from a sample. 1: the most.
  double message_share = 1;
  std::vector<StageCosts> stages = {};  ///< encodes; encode_work() says of what
  StageCosts decode_stages = {};        ///< the last decode; decode_work() says of what
  bool operator==(const CodecCosts&) const = default;

  /// The costs of kernels that take so many times as long: encodes, and decodes.
  CodecCosts times(double encode_factor, double decode_factor) const;
  CodecCosts times(double factor) const { return times(factor, factor); }

  /// Seconds that an encode of so many elements takes.
  double encode_s(std::int64_t elements, bool quotients) const {
    return encode(elements) * (quotients ? encode_factor_quotients : 1);
  }
};

/// What one network interface, and the path between two, can do.
struct LinkCosts {
  double overhead_s = 0;                ///< o: per message, occupies both ports
  double bandwidth = 0;                 ///< B, bytes per second one way
  double bandwidth_both_ways = 0;       ///< bytes per second each way when both directions are busy
  double latency_s = 0;                 ///< L: on the wire, occupies nothing
  double core_s_per_byte = 0;           ///< CPU work of moving a byte, both ends together; 0: none
  double core_s_per_message = 0;        ///< CPU work of a message, both ends together
  double core_factor_interrupting = 1;  ///< times core_s_per_byte: what a byte costs that
                                        ///< interrupts long codec tasks (casync::kOfLongSlice)
  std::int64_t burst_bytes = 0;  ///< a port that has idled lets so much through at once; 0: none
  /// Placement of a collective's ranks on hosts of a machine (Profile::machine).
  struct Span {
    std::uint32_t hosts = 0;    ///< over which its ranks are spread evenly; 0: not known
    std::uint32_t rails = 1;    ///< GPUs of each rank, which take shares of the bytes
    double host_bandwidth = 0;  ///< of all cards of a host, bytes per second
    bool operator==(const Span&) const = default;
  };
  Span span = {};
  bool operator==(const LinkCosts&) const = default;

  /// Makes it another network, which carries so much either way. A burst is of the network that was
  /// measured.
  void set_bandwidth(double bytes_per_s) {
    bandwidth = bandwidth_both_ways = bytes_per_s;
    burst_bytes = 0;
  }
  /// CPU work of a message, both ends together, in seconds.
  double core_s(double bytes, bool interrupting) const {
    return core_s_per_message + core_s_of_byte(interrupting) * bytes;
  }
  double core_s_of_byte(bool interrupting) const {
    return core_s_per_byte * (interrupting ? core_factor_interrupting : 1);
  }
};

/// Measured all-to-one and one-to-all transfers, x in bytes per sender; by number of nodes N.
using GatherCosts = std::map<int, Curve>;

/// How costs of algorithms are estimated that a profile has none of (costs/traffic.hpp).
struct KernelEstimate {
  double share_of_memory = 0;  ///< of the memory bandwidth that kernels reach, above 0, at most 1
  double first_launch_s = 0;   ///< of a kernel
  double next_launch_s = 0;    ///< of one that follows it on the same stream
  bool operator==(const KernelEstimate&) const = default;
};

/// Measured costs on named hardware: profile.yaml, schema hipress.profile/1 (docs/profiles.md lists
/// the keys).
struct Profile {
  std::string name;             ///< "sosp21"
  std::string source;           ///< "measured", or where the numbers come from
  std::string hardware;         ///< "AMD EPYC, 2 cores", "V100"
  std::string fingerprint;      ///< of the file it was read from
  std::string device = "cpu";   ///< what ran the kernels
  double memory_bandwidth = 0;  ///< bytes per second, the ceiling of kernels
  /// The memory bandwidth that the kernels' costs are of, bytes per second; 0: not said.
  double kernels_measured_at = 0;
  int cores = 0;  ///< of the host; 0: not a shared resource
  double core_turn_s =
      0;  ///< how long a thread that encodes or decodes keeps a core that others wait for
  bool shared_host = false;  ///< measured with all ranks on one machine (loopback)
  std::map<std::string, CodecCosts> codecs;
  std::optional<KernelEstimate> estimate;  ///< none: what is not in `codecs` has no costs
  Curve merge;                             ///< raw fp32 add, x in elements
  LinkCosts link;
  double link_rate = 0;  ///< bytes per second that the link is sold as; 0: not said
  OverlapFactors overlap;
  GatherCosts fan_in, fan_out;  ///< empty: not measured
  GatherCosts all_reduce;       ///< a library's own, x in bytes per node; empty: not measured
  /// A library's own, x in bytes of all shards together; empty: not measured.
  GatherCosts all_gather, reduce_scatter, all_to_all;
  /// Hosts on which a library's collectives are modelled where they were not measured; no key of
  /// the file.
  std::optional<Machine> machine = {};
  std::optional<Spread> spread;    ///< none: not measured; spread_of() then assumes one
  Probes probes;                   ///< what drift is told by
  std::vector<std::string> notes;  ///< what a reader must know before trusting it
  struct Series {                  ///< what a curve was fitted to
    std::string name;              ///< "onebit.encode"
    std::vector<Sample> samples;
    double median_relative_residual = 0;
    double max_relative_residual = 0;
    bool operator==(const Series&) const = default;
  };
  std::vector<Series> samples;

  /// The codec's costs, with or without its parameters ("tbq", "tbq(tau=0.25)"). A sparsifier
  /// between two rows of other densities costs in proportion (costs/density.hpp). Without a row:
  /// estimated_costs() (costs/traffic.hpp). InputError that names the algorithms the profile has.
  CodecCosts codec(const std::string& algorithm) const;

  /// The name of the row in `codecs` that codec() gives, or the nearer of two: the algorithm's own,
  /// or that of one with other parameters. Empty if there is none.
  std::string row_of(const std::string& algorithm) const;

  bool operator==(const Profile&) const = default;
};

/// Reads a profile file, or a shipped one by its name ("sosp21"; a file of that name is
/// "./sosp21"). InputError with file and line for what is unreadable, truncated, of another schema,
/// unknown, missing, without unit, negative or not finite.
Profile read_profile(const std::string& path_or_name);

/// Writes the file that read_profile reads back to an equal profile, to the last bit of every
/// number; only `fingerprint` is the file's own, and what `estimate` adds. InputError if the folder
/// cannot be written to, or for a value that read_profile refuses.
void write_profile(const std::string& path, const Profile& profile);

}  // namespace hipress::costs
