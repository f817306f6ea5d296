#include "costs/starter_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costs/machine.hpp"

namespace hipress::costs {
namespace {

/// A GPU, and the machine from whose file its figures are taken.
struct StarterGpu {
  std::string_view name, hardware, machine;
};
constexpr std::array<StarterGpu, 4> kGpus = {{
    {"a100", "A100 SXM, 80 GB", "hgx-a100-80gb"},
    {"h100", "H100 SXM, 80 GB", "hgx-h100"},
    {"h200", "H200 SXM, 141 GB", "hgx-h200"},
    {"b200", "B200, 180 GB", "p6-b200.48xlarge"},
}};

struct Protocol {
  int overhead_us;  ///< overhead of a message, on both ports
  int latency_us;
  double spread;  ///< standard deviation of the logarithm of a link's factor
  std::string_view evidence;
};
constexpr Protocol kTcp = {
    20, 20, 0.2,
    "A small message takes 40 us over TCP in published nccl-tests (8 bytes to one other node: 38 "
    "to "
    "46 us, github.com/NVIDIA/nccl-tests, issue 82); half of it is taken as overhead, half as "
    "latency."};
constexpr Protocol kRdma = {
    5, 5, 0.15,
    "NCCL's own model counts 2.7 to 14 us for a step of a ring between nodes, by protocol "
    "(src/graph/tuning.cc, hwLat); 10 us are taken, half as overhead, half as latency."};

constexpr std::string_view kTcpShare =
    "TCP over Ethernet with frames of 1500 bytes: 1448 of every 1538 bytes on the wire are "
    "payload, "
    "which is 94 %. That NCCL reaches them over TCP at this rate is an assumption; at 32 Gbit/s "
    "and "
    "more, about 60 % of the rate were published (github.com/NVIDIA/nccl, issue 209).";
constexpr std::string_view kHdrShare =
    "InfiniBand or RoCE with GPUDirect: nccl-tests reach 12 GB/s of bus bandwidth per network card "
    "of 100 Gbit/s and 24 GB/s per card of 200 Gbit/s (github.com/NVIDIA/nccl-tests, issues 29, "
    "119 "
    "and 252), which is 96 %.";
constexpr std::string_view kNdrShare =
    "InfiniBand or RoCE with GPUDirect: nccl-tests reach 46 to 48 GB/s of bus bandwidth per "
    "network "
    "card of 400 Gbit/s (github.com/NVIDIA/nccl-tests, issue 290); 47 GB/s is 94 %.";

/// Network of a nominal rate.
struct Rate {
  int gbit_s;
  int percent;  ///< share of the line rate that messages reach, %
  std::string_view evidence;
  const Protocol* protocol;
};
constexpr std::array<Rate, 5> kRates = {{{10, 94, kTcpShare, &kTcp},
                                         {25, 94, kTcpShare, &kTcp},
                                         {100, 96, kHdrShare, &kRdma},
                                         {200, 96, kHdrShare, &kRdma},
                                         {400, 94, kNdrShare, &kRdma}}};

constexpr double kShareOfMemory = 0.8;  ///< share of the memory bandwidth that kernels reach
/// Share of the fp32 FLOP/s that products with a thin factor reach.
constexpr double kShareOfFlops = 0.25;
constexpr int kFirstLaunch_us = 5, kNextLaunch_us = 2;

/// Work of one call: memory traffic, kernel launches, and floating-point operations.
struct Work {
  double bytes_per_element;
  int launches;
  int flops_per_element_rank = 0;
  double bytes_per_value = 0;    ///< traffic of a factor
  int flops_per_value_rank = 0;  ///< to orthogonalise a factor's columns
};
constexpr Work kMerge = {12, 1};
// DietGPU's entropy coder takes 3.3 to 8 ps per bf16 number on an A100, whose memory moves 5.4 to
// 13 bytes in that time; 13 are taken. The 2 further bytes of an fp32 number are read and written.
constexpr Work kLosslessEncode = {17, 3}, kLosslessDecode = {13, 1}, kLosslessAdd = {17, 1};
// A product reads gradient and residual, and multiplies and adds once per element and column. Its
// input factor is read twice and written once to orthogonalise it, with 4 operations per value and
// column; the resulting factor is written.
constexpr Work kProduct = {8, 5, 2, 16, 4};
constexpr Work kProductOfDrawn = {8, 6, 2, 16, 4};
// The decode multiplies the factors, reads and writes gradient and residual, and keeps a mean
// factor.
constexpr Work kReconstruction = {16, 2, 2, 8, 0};

struct Staged {
  std::string_view name;
  int encodes;
  const Work* encode;
};
constexpr std::array<Staged, 3> kStaged = {
    {{"powersgd", 2, &kProduct}, {"acpsgd", 1, &kProduct}, {"rsketch", 1, &kProductOfDrawn}}};

/// Template of the profile's notes.
constexpr std::string_view kNotes =
    R"(  - An estimate to start with. hipress-profile measures the machines that you have; its profile replaces this one.
  - "Every kernel is its least memory traffic per element divided by 80 % of the {memory:g} GB/s that the vendor publishes, plus its launches. The 80 % are an assumption about kernels written with care; plain copies reach about 90 %. Traffic and launches are those that the algorithm's row in the table of algorithms states; merge moves 12 bytes an element."
  - "A launch costs 5 us, and 2 us for each kernel that follows on the same stream, which is the class that is published (a kernel that runs 2.9 us takes 9.6 us if each is waited for, 3.8 us back to back: NVIDIA's technical blog, 'Getting Started with CUDA Graphs')."
  - "Stages of powersgd, acpsgd, rsketch have an estimate of their own kind: each encode reads gradient and residual once, 8 bytes an element, and the decode reads and writes both, 16 bytes, at the same bandwidth; factors are 16 bytes a value of an encode and 8 of the decode. Each product is 2 operations per element and column, and making columns orthogonal 4 per value and column, at 25 % of the {tflops:g} Tflop/s of fp32 that the vendor publishes, which is an assumption. Kernels of an encode: 5, of rsketch's 6; of the decode 2."
  - "lossless is not limited by memory. DietGPU's entropy coder takes 3.3 to 8 ps a number on an A100 (250 to 600 GB/s of bf16, github.com/facebookresearch/dietgpu, README), in which that memory moves 5.4 to 13 bytes; 13 and 4 for the rest of an fp32 number are taken for an encode, which has 3 kernels, and for a decode-and-add, 13 for a decode. Messages are taken to be 84 % as long as they can be, as fp32 values that are normally distributed come to; `sample` of hipress-profile measures yours."
  - "The bandwidth is {percent} % of {gbit_s} Gbit/s. {share} Both directions at once are assumed to be as fast as one."
  - "{protocol}"
  - The library's all-reduce is that of an ideal ring on this link, which has the published bus bandwidth for large gradients.
  - A node is one network card and its GPU. Give `gpus_per_node` or a cluster where GPUs share a card.
)";

/// Text of five digits; ties are rounded down, despite binary rounding errors.
std::string digits(double value) { return fmt::format("{:.4e}", value * (1 - 1e-12)); }

int launches_us(const Work& work) { return kFirstLaunch_us + kNextLaunch_us * (work.launches - 1); }

class Writer {
 public:
  Writer(const Machine& machine, const Rate& rate) : rate_(rate) {
    bytes_per_s_ = machine.memory_bandwidth * kShareOfMemory;
    fp32_ = machine.peak.at("fp32");
    flops_ = fp32_ * kShareOfFlops;
    memory_gb_s_ = machine.memory_bandwidth / 1e9;
  }

  std::string text(const StarterGpu& gpu) const {
    return fmt::format(
               "schema: hipress.profile/1\nname: {}-{}g\nsource: estimated, not measured; kernels "
               "from memory traffic and launches, links from published nccl-tests "
               "figures\nnotes:\n",
               gpu.name, rate_.gbit_s) +
           fmt::format(kNotes, fmt::arg("memory", memory_gb_s_), fmt::arg("tflops", fp32_ / 1e12),
                       fmt::arg("percent", rate_.percent), fmt::arg("gbit_s", rate_.gbit_s),
                       fmt::arg("share", rate_.evidence),
                       fmt::arg("protocol", rate_.protocol->evidence)) +
           fmt::format(
               "hardware: {{name: '{}, {} Gbit/s', device: cuda, memory_bandwidth: {:g}GB/s}}\n",
               gpu.hardware, rate_.gbit_s, memory_gb_s_) +
           kernels() + links();
  }

 private:
  std::string curve(const Work& work) const {
    return fmt::format("{{pieces: [{{from: 0, a_s: {}e-6, s_per_element: {}}}]}}",
                       launches_us(work), digits(work.bytes_per_element / bytes_per_s_));
  }

  std::string stage(const Work& work) const {
    std::string text = fmt::format(
        "{{a_s: {}e-6, s_per_element: {}, s_per_element_rank: {}, s_per_value: {}",
        launches_us(work), digits(work.bytes_per_element / bytes_per_s_),
        digits(work.flops_per_element_rank / flops_), digits(work.bytes_per_value / bytes_per_s_));
    if (work.flops_per_value_rank > 0) {
      text += fmt::format(", s_per_value_rank: {}", digits(work.flops_per_value_rank / flops_));
    }
    return text + "}";
  }

  std::string kernels() const {
    std::string text = fmt::format(
        "kernels:\n  measured_at: {:g}GB/s\n  estimate: {{share_of_memory: {}, first_launch: {}us, "
        "next_launch: {}us}}\n  merge: {}\n  codecs:\n    lossless: {{encode: {}, decode: {}, "
        "decode_add: {}, message_share: 0.84}}\n",
        memory_gb_s_, kShareOfMemory, kFirstLaunch_us, kNextLaunch_us, curve(kMerge),
        curve(kLosslessEncode), curve(kLosslessDecode), curve(kLosslessAdd));
    for (const Staged& one : kStaged) {
      text += fmt::format("    {}:\n      stages:\n", one.name);
      for (int i = 0; i < one.encodes; ++i)
        text += fmt::format("        - {}\n", stage(*one.encode));
      text += fmt::format("      decode: {}\n", stage(kReconstruction));
    }
    return text;
  }

  std::string links() const {
    return fmt::format(
        "links: {{overhead: {}us, rate: {}Gbps, bandwidth: {:g}Gbps, latency: {}us}}\nspread: "
        "{{host: "
        "0.25, links: {}, compute: 0.05, model: 0.05, iterations: 0.05}}\n...\n",
        rate_.protocol->overhead_us, rate_.gbit_s, rate_.gbit_s * rate_.percent / 100.0,
        rate_.protocol->latency_us, rate_.protocol->spread);
  }

  const Rate& rate_;
  double bytes_per_s_, fp32_, flops_, memory_gb_s_;
};

std::string name_of(const StarterGpu& gpu, const Rate& rate) {
  return fmt::format("{}-{}g", gpu.name, rate.gbit_s);
}

}  // namespace

std::optional<std::string> starter_profile(std::string_view name) {
  std::string wanted(name);
  std::ranges::replace(wanted, '_', '-');
  for (const StarterGpu& gpu : kGpus) {
    for (const Rate& rate : kRates) {
      if (name_of(gpu, rate) != wanted) continue;
      return Writer(read_machine(std::string(gpu.machine)), rate).text(gpu);
    }
  }
  return std::nullopt;
}

std::vector<std::string> starter_profile_names() {
  std::vector<std::string> names;
  for (const StarterGpu& gpu : kGpus) {
    for (const Rate& rate : kRates) names.push_back(name_of(gpu, rate));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace hipress::costs
