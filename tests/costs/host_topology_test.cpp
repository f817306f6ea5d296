#include "costs/host_topology.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;
using tests::complaint;
using tests::TemporaryFolder;

/// NCCL topology of two processors, each with 4 cores of 2 threads and a switch with GPUs and a
/// card.
std::string dump(const std::string& links, const std::string& card_class = "0x020700") {
  std::string text = "<system version=\"1\">\n";
  for (int i = 0; i < 2; ++i) {
    text += fmt::format(
        "<cpu numaid=\"{0}\" affinity=\"00000000,0000{1}\" arch=\"x86_64\" "
        "vendor=\"AuthenticAMD\">\n"
        "<pci busid=\"0000:{0}0:00.0\" class=\"0x060400\">\n",
        i, i == 0 ? "0f0f" : "f0f0");
    for (int k = 0; k < 2; ++k) {
      text += fmt::format(
          "<pci busid=\"0000:{0}{1}:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
          "link_width=\"16\"><gpu dev=\"{2}\" sm=\"80\">\n{3}</gpu></pci>\n",
          i, k + 1, 2 * i + k, links);
    }
    text += fmt::format(
        "<pci busid=\"0000:{0}9:00.0\" class=\"{1}\" vendor=\"0x15b3\"><nic>\n"
        "<net dev=\"{0}\" speed=\"200000\" gdr=\"1\"/></nic></pci>\n</pci>\n"
        "<nic><net dev=\"7\" speed=\"100000\" gdr=\"0\"/></nic></cpu>\n",
        i, card_class);
  }
  return text + "</system>\n";
}
const std::string kSwitch = "<nvlink target=\"0000:c4:00.0\" count=\"12\" tclass=\"0x068000\"/>\n";

const std::string kMatrix =
    "\x1b[4m\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV4\tNV4\tNV4\tPIX\tNODE\tSYS\t0-7,16-23\t0\n"
    "GPU1\tNV4\t X \tNV4\tNV4\tPXB\tNODE\tSYS\t0-7,16-23\t0\n"
    "GPU2\tNV4\tNV4\t X \tNV4\tSYS\tNODE\tPIX\t8-15,24-31\t1\n"
    "GPU3\tNV4\tNV4\tNV4\t X \tSYS\tNODE\tPIX\t8-15,24-31\t1\n"
    "NIC0\tPIX\tPXB\tSYS\tSYS\t X \tSYS\tSYS\n"
    "NIC1\tNODE\tNODE\tNODE\tNODE\tSYS\t X \tSYS\n"
    "NIC2\tSYS\tSYS\tPIX\tPIX\tSYS\tSYS\t X \n"
    "\nLegend:\n\n  X    = Self\n";

std::string with(std::string text, const std::string& what, const std::string& instead) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), instead);
}

TEST_CASE("an NCCL topology becomes a machine") {
  const TemporaryFolder folder;
  const HostTopology topology = read_host_topology(folder.file("topo.xml", dump(kSwitch)));
  const Machine machine = machine_of(topology, {});
  CHECK(machine.generation->name == std::string("ampere"));
  CHECK(machine.gpus == 4);
  // 12 NVLinks of 25 GB/s.
  CHECK(machine.gpu_bandwidth == Approx(300e9));
  CHECK(machine.network == &network_kind("infiniband"));
  CHECK(machine.card_rate == Approx(25e9));
  CHECK(machine.cpu == "amd");
  // 16 hardware threads in several ranges, two per core.
  CHECK(machine.cores == 8);
  CHECK(in_words(topology, machine) ==
        "4 GPUs on one NVSwitch (300GB/s each way), 2 cards of 200Gbit/s, one for 2 GPUs, "
        "2 NUMA nodes");
  CHECK_THAT(machine.sources.at("gpu"), Contains("starter machine") && Contains("hgx-a100-80gb"));
  write_machine(folder.path("mine.yaml"), machine);
  CHECK(read_machine(folder.path("mine.yaml")) == machine);
}

TEST_CASE("every shipped machine is written as it is read") {
  const TemporaryFolder folder;
  for (const std::string& name : machine_names()) {
    INFO(name);
    write_machine(folder.path("same.yaml"), read_machine(name));
    CHECK(read_machine(folder.path("same.yaml")) == read_machine(name));
  }
}

TEST_CASE("GPUs without NVLink are joined over their slots") {
  const TemporaryFolder folder;
  const Machine machine = machine_of(
      read_host_topology(folder.file("topo.xml", dump("", "0x020000"))), {.rate = 12.5e9});
  // GPUs below two switches communicate through memory: half of 3/4 of 16 GT/s × 16 lanes ÷ 8 bits.
  CHECK(machine.fabric == &fabric_kind("shm"));
  CHECK(machine.gpu_bandwidth == Approx(12e9));
  CHECK(machine.network == &network_kind("roce"));
  CHECK(machine.card_rate == 12.5e9);
}

TEST_CASE("a topology that names devices by class alone takes the rest of another machine") {
  const TemporaryFolder folder;
  std::string text = "<system version=\"1\"><cpu numaid=\"0\" vendor=\"GenuineIntel\">\n";
  for (int i = 0; i < 8; ++i) {
    text += fmt::format(
        "<pci busid=\"{0}\" class=\"0x060400\"><pci busid=\"{0}1\" class=\"0x030200\"/>"
        "<pci busid=\"{0}2\" class=\"0x020700\"/></pci>\n",
        i);
  }
  const HostTopology topology =
      read_host_topology(folder.file("topo.xml", text + "</cpu></system>"));
  CHECK_THAT(complaint([&] { machine_of(topology, {}); }),
             Contains("GPUs that the file does not tell apart") && Contains("by the option like"));
  const Machine machine = machine_of(topology, {.like = "hgx-h200"});
  CHECK(in_words(topology, machine) ==
        "8 GPUs on one NVSwitch (450GB/s each way), 8 cards of 400Gbit/s, one for each GPU, "
        "1 NUMA node");
  CHECK_THAT(machine.sources.at("fabric"), Contains("not told"));
}

TEST_CASE("a matrix of nvidia-smi becomes a machine") {
  const TemporaryFolder folder;
  const HostTopology topology = read_host_topology(folder.file("topo.txt", kMatrix));
  const Machine machine = machine_of(topology, {.like = "", .rate = 25e9, .network = "roce"});
  // 4 links to each of 3 other GPUs are 12, as many as an A100 has.
  CHECK(machine.generation->name == std::string("ampere"));
  CHECK(in_words(topology, machine) ==
        "4 GPUs joined by NVLink (300GB/s each way), 2 cards of 200Gbit/s, one for 2 GPUs "
        "(1 other card left out), 2 NUMA nodes");
  CHECK(machine.cores == 16);
  CHECK(machine.network == &network_kind("roce"));
  CHECK_THAT(machine.sources.at("network"), Contains("rate: given by hand"));
  // 12 links to each of 3 other GPUs would be more than a GPU has, so they end in switches.
  std::string switched = kMatrix;
  for (std::size_t at; (at = switched.find("NV4")) != std::string::npos;) {
    switched.replace(at, 3, "NV12");
  }
  const HostTopology other = read_host_topology(folder.file("switched.txt", switched));
  CHECK(machine_of(other, {}).fabric == &fabric_kind("nvswitch"));
  CHECK(machine_of(other, {}).gpu_bandwidth == Approx(300e9));
}

TEST_CASE("topologies that are cut off or name GPUs that are not there are refused") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    return complaint([&] { machine_of(read_host_topology(folder.file("topo", text)), {}); });
  };
  const std::string whole = dump(kSwitch);
  CHECK_THAT(refusal(whole.substr(0, whole.size() / 2)), Contains("is cut off or no XML"));
  CHECK_THAT(refusal("<graphs version=\"1\">\n</graphs>\n"),
             Contains("topo:1: its root is not <system>"));
  CHECK_THAT(refusal("<system version=\"1\">\n<cpu numaid=\"0\"/>\n</system>\n"),
             Contains("topo:1: has no GPU"));
  CHECK_THAT(
      refusal(dump("<nvlink target=\"0000:aa:00.0\" count=\"12\" tclass=\"0x030200\"/>\n")),
      Contains("topo:4: has NVLinks to a GPU") && Contains("0000:aa:00.0' that is not there"));
  CHECK_THAT(refusal(with(whole, kSwitch, "")), Contains("topo:4: this GPU has no NVLink"));
  CHECK_THAT(refusal(with(whole, "sm=\"80\"", "sm=\"many\"")),
             Contains("topo:4: <gpu> needs a whole number as sm"));
  CHECK_THAT(refusal(with(whole, "count=\"12\"", "count=\"0\"")), Contains("a count of 1 or more"));
  CHECK_THAT(refusal("GPUs: 8\n"), Contains("topo:1: is neither an NCCL topology"));
  CHECK_THAT(refusal(""), Contains("is neither an NCCL topology"));
  CHECK_THAT(refusal(with(kMatrix, "\tNV4\tPXB\tNODE\tSYS\t0-7,16-23\t0", "")),
             Contains("topo:3: is cut off: GPU1 has 3 of 7 columns"));
  CHECK_THAT(refusal(kMatrix.substr(0, kMatrix.find("NIC2\tSYS"))),
             Contains("is cut off: NIC2 has no row"));
  const std::size_t row = kMatrix.find("GPU3\tNV4");
  CHECK_THAT(refusal(with(kMatrix, kMatrix.substr(row, kMatrix.find("NIC0\tPIX") - row), "")),
             Contains("topo:7: NIC2 serves GPU3, which has no row"));
  CHECK_THAT(refusal(with(kMatrix, "PXB", "PXBNODE")),
             Contains("topo:3: 'PXBNODE' is not one of X"));
  CHECK_THAT(refusal(with(kMatrix, "NIC1\tNODE", "NIC9\tNODE")),
             Contains("topo:7: 'NIC9' has no column"));
  for (std::string text = whole; !text.empty(); text.resize(text.size() - 7)) {
    if (text.size() < 7) break;
    if (text.find("</system>") == std::string::npos) {
      REQUIRE_THAT(refusal(text), Contains("is cut off") || Contains("neither"));
    }
  }
}

}  // namespace
}  // namespace hipress::costs
