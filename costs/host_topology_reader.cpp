#include <fmt/format.h>
#include <tinyxml2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "costs/host_topology.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/input_file.hpp"

namespace hipress::costs {
namespace {

using tinyxml2::XMLElement;

constexpr int kMostThreads = 1 << 16;
constexpr double kMostPcie = 1e12;

struct Gpu {
  int line = 0;
  std::map<std::string, int> links;  ///< number of NVLinks, by the GPU at the other end
  int switch_links = 0;
  std::set<std::string> beside;  ///< its PCIe switch, or the GPUs below that switch
};

struct Card {
  double rate = 0;
  std::string network;
  bool is_device = true;  ///< false: a bridge, a tunnel or a virtual machine's network
  bool beside_gpu = false;
};

/// Content of a file of either format.
struct Parts {
  std::map<std::string, Gpu> gpus;
  std::map<std::string, Card> cards;
  std::set<std::string> numa_nodes;
  std::map<std::string, std::set<int>>
      threads;  ///< hardware threads, by a processor's list of them
};

/// True if NVLinks connect all GPUs, directly or through other GPUs.
bool joined_by_links(const std::map<std::string, Gpu>& gpus) {
  std::set<std::string> reached = {gpus.begin()->first};
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const auto& [name, gpu] : gpus) {
      for (const auto& [peer, count] : gpu.links) {
        if (reached.contains(peer)) reached.insert(name);
        if (reached.contains(name)) reached.insert(peer);
      }
    }
  }
  return reached.size() == gpus.size();
}

/// Number of cores with these hardware threads. Second threads are a range of their own:
/// "0-47,96-143".
int cores_of(const std::set<int>& threads) {
  int ranges = 0;
  for (const int thread : threads) ranges += !threads.contains(thread - 1);
  const int count = static_cast<int>(threads.size());
  return ranges > 1 ? count / 2 : count;
}

/// Chooses the cards that a job uses: physical rather than virtual cards; of these, cards beside
/// GPUs; of these, the fastest.
void choose_cards(const std::map<std::string, Card>& all, HostTopology& topology) {
  std::vector<Card> cards;
  for (const auto& [name, card] : all) cards.push_back(card);
  const auto prefer = [&](auto property) {
    if (std::ranges::any_of(cards, property)) std::erase_if(cards, std::not_fn(property));
  };
  prefer(&Card::is_device);
  const std::size_t devices = cards.size();
  prefer(&Card::beside_gpu);
  if (cards.empty()) return;
  const double fastest = std::ranges::max(cards, {}, &Card::rate).rate;
  std::erase_if(cards, [&](const Card& card) { return card.rate < fastest; });
  // Several bridges and tunnels may be on one card.
  if (!cards.front().is_device) cards.resize(1);
  topology.cards = static_cast<int>(cards.size());
  topology.other_cards = cards.front().is_device ? static_cast<int>(devices - cards.size()) : 0;
  topology.cards_beside_gpus = cards.front().beside_gpu;
  topology.card_rate = fastest;
  topology.network = cards.front().network;
}

void sum_up(const Parts& parts, HostTopology& topology) {
  const std::map<std::string, Gpu>& gpus = parts.gpus;
  const Gpu& first = gpus.begin()->second;
  topology.gpus = static_cast<int>(gpus.size());
  choose_cards(parts.cards, topology);
  topology.numa_nodes = static_cast<int>(parts.numa_nodes.size());
  for (const auto& [list, threads] : parts.threads) topology.cores += cores_of(threads);
  topology.one_pcie_switch = std::ranges::all_of(gpus, [&](const auto& gpu) {
    return !gpu.second.beside.empty() && gpu.second.beside == first.beside;
  });
  topology.has_switch = first.switch_links > 0;
  if (!topology.nvlinks) return;
  topology.nvlinks = 0;
  for (const auto& [name, gpu] : gpus) {
    if ((gpu.switch_links > 0) != topology.has_switch) {
      throw io::InputError(topology.file, (topology.has_switch ? gpu : first).line,
                           "this GPU has no NVLink to a switch and others have: see that "
                           "nvidia-smi nvlink -s shows its links up, then write the file again");
    }
  }
  if (topology.has_switch) {
    topology.nvlinks = first.switch_links;
  } else if (gpus.size() > 1 && joined_by_links(gpus)) {
    int links = 0;
    for (const auto& [peer, count] : first.links) links += count;
    topology.nvlinks = links;
  }
}

/// Reader of NCCL topologies: XML of <system>, <cpu>, <pci>, <gpu>, <nvlink>, <nic> and <net>.
class DumpReader {
 public:
  DumpReader(const std::string& path, const std::string& text) {
    topology_.file = path;
    topology_.format = "an NCCL topology";
    document_.Parse(text.data(), text.size());
    if (document_.Error()) {
      fail(document_.ErrorLineNum(),
           fmt::format("is cut off or no XML ({}): write the file again, with "
                       "NCCL_TOPO_DUMP_FILE",
                       document_.ErrorName()));
    }
  }

  HostTopology read() {
    const XMLElement* system = document_.RootElement();
    if (system == nullptr || std::string_view(system->Name()) != "system") {
      fail(system ? system->GetLineNum() : 0,
           "its root is not <system>, so it is no NCCL topology: write one with "
           "NCCL_TOPO_DUMP_FILE");
    }
    walk(*system, {});
    if (parts_.gpus.empty()) {
      fail(system->GetLineNum(),
           "has no GPU (<gpu>, or <pci> of class 0x0302): write the file again from a job on the "
           "host's GPUs");
    }
    for (const auto& [name, gpu] : parts_.gpus) {
      for (const auto& [peer, count] : gpu.links) {
        if (parts_.gpus.contains(peer)) continue;
        fail(gpu.line, fmt::format("has NVLinks to a GPU {} that is not there: write the file from "
                                   "a job on all GPUs of the host",
                                   io::quote(peer)));
      }
    }
    for (auto& [name, card] : parts_.cards) {
      card.beside_gpu = std::ranges::any_of(parts_.gpus, [&](const auto& gpu) {
        return gpu.second.beside.contains(bridge_of_.at(name));
      });
    }
    sum_up(parts_, topology_);
    return topology_;
  }

 private:
  /// Path from the root to an element.
  struct Place {
    std::string host;                    ///< for files with several hosts
    std::string bridge;                  ///< outermost PCIe device, below the processor
    const XMLElement* device = nullptr;  ///< innermost PCIe device, which has the element
  };

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw io::InputError(topology_.file, line, message);
  }

  static std::string_view attribute(const XMLElement& element, const char* name) {
    const char* value = element.Attribute(name);
    return value ? value : "";
  }

  int integer(const XMLElement& element, const char* name) const {
    int value = 0;
    if (element.QueryIntAttribute(name, &value) != tinyxml2::XML_SUCCESS) {
      fail(element.GetLineNum(),
           fmt::format("<{}> needs a whole number as {}: write the file again", element.Name(),
                       name));
    }
    return value;
  }

  void walk(const XMLElement& parent, const Place& place) {
    for (const XMLElement* child = parent.FirstChildElement(); child != nullptr;
         child = child->NextSiblingElement()) {
      for (const auto& [name, read] : kElements) {
        if (name == child->Name()) (this->*read)(*child, place);
      }
    }
  }

  void read_cpu(const XMLElement& cpu, const Place&) {
    const std::string host(attribute(cpu, "host_hash"));
    parts_.numa_nodes.insert(host + " " + std::string(attribute(cpu, "numaid")));
    constexpr std::array<std::array<std::string_view, 2>, 3> kVendors = {
        {{"GenuineIntel", "intel"}, {"AuthenticAMD", "amd"}, {"arm64", "arm"}}};
    for (const auto& [said, vendor] : kVendors) {
      if (said == attribute(cpu, "vendor") || said == attribute(cpu, "arch")) {
        topology_.cpu = vendor;
      }
    }
    // Hexadecimal words of 32 threads each, highest first. Only the first host's are read.
    if (first_host_.value_or(host) == host) read_affinity(attribute(cpu, "affinity"));
    first_host_ = first_host_.value_or(host);
    walk(cpu, {.host = host, .bridge = {}, .device = nullptr});
  }

  void read_affinity(std::string_view mask) {
    int thread = 0;
    for (std::size_t i = mask.size(); i-- > 0 && thread < kMostThreads;) {
      if (mask[i] == ',') continue;
      int digit = 0;
      std::from_chars(&mask[i], &mask[i] + 1, digit, 16);
      for (int bit = 0; bit < 4; ++bit, ++thread) {
        if (digit >> bit & 1) parts_.threads[std::string(mask)].insert(thread);
      }
    }
  }

  void read_pci(const XMLElement& pci, const Place& place) {
    Place inner = place;
    inner.device = &pci;
    if (inner.bridge.empty())
      inner.bridge = place.host + " " + std::string(attribute(pci, "busid"));
    // Files for NCCL_TOPO_FILE may identify a GPU by its class only.
    const std::string_view device_class = attribute(pci, "class");
    if (pci.FirstChildElement() == nullptr && device_class.starts_with("0x0302")) {
      add_gpu(pci, inner);
    }
    if (pci.FirstChildElement() == nullptr && device_class.starts_with("0x02")) {
      add_card(std::string(attribute(pci, "busid")), inner, pci);
    }
    walk(pci, inner);
  }

  Gpu& add_gpu(const XMLElement& element, const Place& place) {
    const XMLElement& pci = place.device ? *place.device : element;
    Gpu& gpu = parts_.gpus[place.host + " " + std::string(attribute(pci, "busid"))];
    gpu.line = element.GetLineNum();
    gpu.beside.insert(place.bridge);
    // "16.0 GT/s PCIe": NCCL counts three quarters of it (src/graph/topo.cc, kvDictPciGen).
    double transfers = 0;
    const std::string_view speed = attribute(pci, "link_speed");
    std::from_chars(speed.data(), speed.data() + speed.size(), transfers);
    const double rate = transfers * 1e9 / 8 * 0.75 * pci.IntAttribute("link_width");
    if (rate > 0 && rate < kMostPcie &&
        (topology_.pcie_bandwidth == 0 || rate < topology_.pcie_bandwidth)) {
      topology_.pcie_bandwidth = rate;
    }
    return gpu;
  }

  void read_gpu(const XMLElement& element, const Place& place) {
    topology_.nvlinks = 0;
    topology_.compute_capability = integer(element, "sm");
    Gpu& gpu = add_gpu(element, place);
    for (const XMLElement* link = element.FirstChildElement("nvlink"); link != nullptr;
         link = link->NextSiblingElement("nvlink")) {
      const int count = integer(*link, "count");
      if (count < 1) fail(link->GetLineNum(), "<nvlink> needs a count of 1 or more");
      if (attribute(*link, "tclass").starts_with("0x03")) {
        gpu.links[place.host + " " + std::string(attribute(*link, "target"))] += count;
      } else if (attribute(*link, "tclass").starts_with("0x0680")) {
        gpu.switch_links += count;
      }
    }
  }

  void read_net(const XMLElement& net, const Place& place) {
    add_card(place.host + " " + std::to_string(integer(net, "dev")), place, net);
  }

  /// Adds a card. A card that is listed below several processors counts once.
  void add_card(const std::string& name, const Place& place, const XMLElement& element) {
    Card& card = parts_.cards[name];
    card.is_device = place.device != nullptr;
    card.rate = std::max(0, element.IntAttribute("speed")) * 1e6 / 8;
    card.network = network_of(place.device, element);
    bridge_of_[name] = place.bridge;
  }

  static const char* network_of(const XMLElement* device, const XMLElement& net) {
    struct Row {
      std::string_view vendor, device, device_class;  ///< prefixes
      bool gpu_direct;                                ///< only if the card can access GPU memory
      const char* network;
    };
    static constexpr std::array<Row, 4> kRows = {{
        {"0x1d0f", "0xefa0", "", false, "efa-v1"},
        {"0x1d0f", "0xefa", "", false, "efa"},
        {"", "", "0x0207", false, "infiniband"},
        {"", "", "0x0200", true, "roce"},
    }};
    const std::string_view name = net.Name();
    if (device == nullptr) return "ethernet";
    for (const Row& row : kRows) {
      if (attribute(*device, "vendor").starts_with(row.vendor) &&
          attribute(*device, "device").starts_with(row.device) &&
          attribute(*device, "class").starts_with(row.device_class) &&
          (!row.gpu_direct || net.IntAttribute("gdr") == 1)) {
        return row.network;
      }
    }
    return name == "net" ? "ethernet" : "";
  }

  using Read = void (DumpReader::*)(const XMLElement&, const Place&);
  static const std::array<std::pair<std::string_view, Read>, 5> kElements;

  tinyxml2::XMLDocument document_;
  HostTopology topology_;
  Parts parts_;
  std::map<std::string, std::string> bridge_of_;  ///< by card
  std::optional<std::string> first_host_;
};

const std::array<std::pair<std::string_view, DumpReader::Read>, 5> DumpReader::kElements = {{
    {"cpu", &DumpReader::read_cpu},
    {"pci", &DumpReader::read_pci},
    {"gpu", &DumpReader::read_gpu},
    {"nic", &DumpReader::walk},
    {"net", &DumpReader::read_net},
}};

/// Reader of the output of `nvidia-smi topo -m`, a matrix of GPUs and cards.
class MatrixReader {
 public:
  MatrixReader(const std::string& path, const std::string& text) {
    topology_.file = path;
    topology_.format = "nvidia-smi topo -m";
    topology_.nvlinks = 0;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines_.push_back(words_of(line));
  }

  /// True if there is a header: a line that names columns, starting with GPU0.
  bool has_matrix() const { return header() < lines_.size(); }

  HostTopology read() {
    const std::size_t at = header();
    for (const std::string& word : lines_[at]) {
      if (word == "CPU") break;
      columns_.push_back(word);
    }
    for (std::size_t i = at + 1; i < lines_.size(); ++i) {
      if (lines_[i].empty() && !rows_.empty()) break;
      if (lines_[i].empty()) continue;
      read_row(static_cast<int>(i + 1), lines_[i]);
    }
    for (const std::string& column : columns_) {
      if (rows_.contains(column)) continue;
      for (const auto& [row, cells] : rows_) {
        if (is_gpu(column) && !is_gpu(row) && is_near(cells.at(column))) {
          fail(line_of_.at(row),
               fmt::format("{} serves {}, which has no row: save the whole output", row, column));
        }
      }
      fail(static_cast<int>(lines_.size()),
           fmt::format("is cut off: {} has no row; save the whole output", column));
    }
    fill_parts();
    sum_up(parts_, topology_);
    return topology_;
  }

 private:
  using Words = std::vector<std::string>;

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw io::InputError(topology_.file, line, message);
  }

  static bool is_gpu(std::string_view name) { return name.starts_with("GPU"); }
  static bool is_near(std::string_view cell) { return cell == "PIX" || cell == "PXB"; }

  /// Number of NVLinks in a cell such as "NV18"; 0 for other cells.
  static int links_of(std::string_view cell) {
    int count = 0;
    if (cell.starts_with("NV")) {
      std::from_chars(cell.data() + 2, cell.data() + cell.size(), count);
    }
    return count;
  }

  /// Words of a line, without terminal escape sequences.
  static Words words_of(const std::string& line) {
    std::string plain;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\x1b') {
        i = std::min(line.find('m', i), line.size());
      } else {
        plain += line[i];
      }
    }
    std::istringstream in(plain);
    Words words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
  }

  std::size_t header() const {
    const auto at = std::ranges::find_if(lines_, [](const Words& words) {
      return !words.empty() && words[0] == "GPU0" && (words.size() == 1 || words[1] != "X");
    });
    return static_cast<std::size_t>(at - lines_.begin());
  }

  void read_row(int line, const Words& words) {
    const std::string& name = words[0];
    if (std::ranges::find(columns_, name) == columns_.end()) {
      fail(line,
           fmt::format("{} has no column: save the whole output, one row a line", io::quote(name)));
    }
    if (words.size() <= columns_.size()) {
      fail(line, fmt::format("is cut off: {} has {} of {} columns; save the whole output", name,
                             words.size() - 1, columns_.size()));
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = words[i + 1];
      constexpr std::array<std::string_view, 7> kCells = {"X",   "SYS", "SOC", "NODE",
                                                          "PHB", "PXB", "PIX"};
      if (links_of(cell) == 0 && std::ranges::find(kCells, cell) == kCells.end()) {
        fail(line, fmt::format("{} is not one of X, NV#, PIX, PXB, PHB, NODE and SYS: save the "
                               "output of nvidia-smi topo -m as it is",
                               io::quote(cell)));
      }
      rows_[name][columns_[i]] = cell;
    }
    line_of_[name] = line;
    if (!is_gpu(name)) return;
    const std::size_t cpu = columns_.size() + 1;
    if (words.size() > cpu) read_threads(words[cpu]);
    if (words.size() > cpu + 1) parts_.numa_nodes.insert(words[cpu + 1]);
  }

  /// Reads a list of threads, such as "0-47,96-143".
  void read_threads(const std::string& ranges) {
    for (const std::string_view range : io::split_fields(ranges)) {
      int first = 0, last = 0;
      const char* const end = range.data() + range.size();
      const auto from = std::from_chars(range.data(), end, first);
      last = first;
      if (from.ptr != end) std::from_chars(from.ptr + 1, end, last);
      if (from.ec != std::errc{}) continue;
      for (int i = first; i <= std::min(last, kMostThreads); ++i) parts_.threads[ranges].insert(i);
    }
  }

  /// Fills parts_ from the matrix. Links lead to NVSwitches if all pairs of GPUs show the same
  /// number of links, and direct links to all other GPUs would take more than a GPU has.
  void fill_parts() {
    std::set<int> counts;
    for (const auto& [name, cells] : rows_) {
      for (const auto& [peer, cell] : cells) {
        if (is_gpu(name) && is_gpu(peer) && peer != name) counts.insert(links_of(cell));
      }
    }
    const auto gpus = std::ranges::count_if(columns_, is_gpu);
    constexpr int kMostLinks = 18;
    const bool switched = counts.size() == 1 && *counts.begin() * (gpus - 1) > kMostLinks;
    for (const auto& [name, cells] : rows_) {
      if (is_gpu(name)) {
        Gpu& gpu = parts_.gpus[name];
        gpu.line = line_of_.at(name);
        if (switched) gpu.switch_links = *counts.begin();
        gpu.beside.insert(name);
        for (const auto& [peer, cell] : cells) {
          if (is_gpu(peer) && is_near(cell)) gpu.beside.insert(peer);
          if (is_gpu(peer) && !switched && links_of(cell) > 0) gpu.links[peer] = links_of(cell);
        }
      } else {
        Card& card = parts_.cards[name];
        card.beside_gpu = std::ranges::any_of(
            cells, [](const auto& cell) { return is_gpu(cell.first) && is_near(cell.second); });
      }
    }
  }

  HostTopology topology_;
  Parts parts_;
  std::vector<Words> lines_;
  Words columns_;
  std::map<std::string, std::map<std::string, std::string>> rows_;
  std::map<std::string, int> line_of_;
};

}  // namespace

HostTopology read_host_topology(const std::string& path) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 24;
  const std::string text = io::read_file(path, {.most_bytes = kMostBytes});
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '<') return DumpReader(path, text).read();
  MatrixReader matrix(path, text);
  if (matrix.has_matrix()) return matrix.read();
  throw io::InputError(path, 1,
                       "is neither an NCCL topology (XML, from NCCL_TOPO_DUMP_FILE) nor a matrix "
                       "from GPU0 on, which nvidia-smi topo -m prints: give one of them");
}

}  // namespace hipress::costs
