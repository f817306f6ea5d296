#include "costs/machine.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "costs/profile.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;
using tests::TemporaryFolder;

const std::string kText =
    "schema: hipress.machine/1\n"
    "name: lab\n"
    "gpus: 8\n"
    "gpu: {name: H100, generation: hopper, memory: 80GB, memory_bandwidth: 3350GB/s,\n"
    "      tflops: {bf16: 989}, kernels: h100-400g}\n"
    "fabric: {kind: nvswitch, bandwidth: 450GB/s}\n"
    "network: {kind: infiniband, cards: 8, rate: 400Gbps}\n"
    "cpu: {vendor: intel, cores: 112}\n"
    "sources: {gpu: a data sheet, fabric: another, network: a third, cpu: a fourth}\n";

std::string with(const std::string& what, const std::string& instead) {
  std::string text = kText;
  return text.replace(text.find(what), what.size(), instead);
}

std::string error_of(const std::string& text) {
  try {
    parse_machine(text, "lab.yaml");
  } catch (const io::InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a machine file says GPUs, what joins them, cards and processors") {
  const Machine machine = parse_machine(kText, "lab.yaml");
  CHECK(machine.gpus == 8);
  CHECK(machine.memory_bandwidth == 3.35e12);
  CHECK(machine.peak.at("bf16") == 989e12);
  CHECK(machine.gpu_bandwidth == 450e9);
  // InfiniBand reaches 96 % of 8 cards of 400 Gbit/s: 8 · 50e9 · 0.96.
  CHECK(machine.host_bandwidth() == Approx(384e9));
  CHECK(machine.network_latency_s == 2.5e-6);
  const Machine other =
      parse_machine(with("rate: 400Gbps", "rate: 400Gbps, share: 0.5, latency: 9us"), "lab.yaml");
  CHECK(other.host_bandwidth() == Approx(200e9));
  CHECK(other.network_latency_s == 9e-6);
}

TEST_CASE("a machine file that makes no sense is refused at its line") {
  CHECK_THAT(error_of(with("hopper", "hoper")),
             Contains("lab.yaml:4: gpu.generation: unknown 'hoper'; did you mean 'hopper'?"));
  CHECK_THAT(error_of(with("kind: nvswitch", "kind: none")),
             Contains("lab.yaml:6: fabric.kind: 8 GPUs are joined by something"));
  CHECK_THAT(
      error_of(with("infiniband", "carrier pigeon")),
      Contains("lab.yaml:7: network.kind: unknown 'carrier pigeon' (known: infiniband, roce, efa"));
  CHECK_THAT(error_of(with("cards: 8", "cards: 0")), Contains("lab.yaml:7: network.cards"));
  CHECK_THAT(error_of(with("gpus: 8", "gpus: 0")), Contains("lab.yaml:3: gpus"));
  CHECK_THAT(error_of(with("450GB/s", "450")), Contains("lab.yaml:6: fabric.bandwidth"));
  CHECK_THAT(error_of(with(", network: a third", "")),
             Contains("lab.yaml:9: sources: has no entry for network"));
  CHECK_THAT(error_of(with("cores: 112", "cores: 112, sockets: 2")),
             Contains("lab.yaml:8: unknown key 'cpu.sockets'"));
  CHECK_THAT(error_of(kText.substr(0, kText.find("cpu:"))), Contains("cpu"));
  CHECK_THAT(error_of(with("machine/1", "machine/9")), Contains("lab.yaml:1: schema: must be"));
}

TEST_CASE("a machine file that is cut anywhere is refused, or means the same") {
  const TemporaryFolder folder;
  const std::string text = io::read_file(machine_file("p5.48xlarge"));
  const Machine whole = read_machine("p5.48xlarge");
  int same = 0;
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    for (const char* end : {"", "\n"}) {  // cut at a byte, and with the line end that an editor
                                          // adds
      const std::string path = folder.file("m.yaml", text.substr(0, bytes) + end);
      try {
        same += read_machine(path) == whole ? 1 : 1000;
      } catch (const io::InputError& error) {
        CHECK_THAT(error.what(), Contains("m.yaml"));
      }
    }
  }
  CHECK(same == 2);  // only the file's last line end may be missing
}

TEST_CASE("an unknown machine is refused with the nearest known one") {
  CHECK_THROWS_WITH(read_machine("p5.48xlrge"),
                    Contains("machine 'p5.48xlrge': neither a file nor a shipped machine") &&
                        Contains("did you mean 'p5.48xlarge'"));
}

TEST_CASE("every shipped machine is read, has its name, and kernels that there are") {
  const std::vector<std::string> names = machine_names();
  CHECK(names.size() >= 26);
  for (const std::string& name : names) {
    INFO(name);
    const Machine machine = read_machine(name);
    CHECK(machine.name == name);
    CHECK(read_profile(machine.kernels).memory_bandwidth > 0);
    CHECK((machine.gpus == 1) == (machine.gpu_bandwidth == 0));
    CHECK(machine.peak.contains("fp32"));
  }
}

}  // namespace
}  // namespace hipress::costs
