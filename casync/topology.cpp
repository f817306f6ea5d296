#include "casync/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::casync {
namespace {

/// Built-in rows, then registered ones.
std::vector<const Topology*>& rows() {
  static std::vector<const Topology*> rows(own_topologies().begin(), own_topologies().end());
  return rows;
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

const Topology* find(std::string_view name) {
  const auto found = std::ranges::find_if(
      rows(), [&](const Topology* row) { return equal_in_any_case(row->name, name); });
  return found == rows().end() ? nullptr : *found;
}

/// True for topologies of whole gradients; the others are for shards.
bool is_of_gradients(const Topology* row) {
  return row->operation == Operation::kMean || row->operation == Operation::kBroadcast;
}

std::string names_of(std::span<const Topology* const> topologies) {
  std::string names;
  for (const Topology* topology : topologies) {
    names += (names.empty() ? "" : ", ") + std::string(topology->name);
  }
  return names;
}

}  // namespace

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::kMean:
      return "mean";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kGather:
      return "gather";
  }
  return "";
}

std::span<const Topology* const> topologies() { return rows(); }

TopologyPair topologies_of(std::string_view topology, std::string_view raw_topology) {
  const Topology& encoded = find_topology(topology);
  if (!raw_topology.empty()) return {&encoded, &find_topology(raw_topology)};
  return {&encoded, encoded.dense.empty() ? &encoded : &find_topology(encoded.dense)};
}

const Topology& TopologyPair::of(const Algorithm* algorithm) const {
  if (algorithm == nullptr || algorithm->is_additive()) return *raw;
  const bool dense = encoded->form == Topology::Form::kEncoded && algorithm->half_precision;
  return dense ? *raw : *encoded;
}

int TopologyPair::encodings_of(const Algorithm& algorithm, std::uint32_t nodes) const {
  return algorithm.is_additive() ? 1 : of(&algorithm).encodings_of(nodes);
}

std::vector<const Topology*> topologies_for(Operation operation) {
  std::vector<const Topology*> found;
  std::ranges::copy_if(rows(), std::back_inserter(found),
                       [&](const Topology* row) { return row->operation == operation; });
  return found;
}

std::string topology_names(Operation operation) { return names_of(topologies_for(operation)); }

TopologyRegistration::TopologyRegistration(const Topology& topology) : topology_(&topology) {
  if (find(topology.name)) {
    throw std::invalid_argument("there is a topology '" + std::string(topology.name) + "' already");
  }
  rows().push_back(topology_);
}

TopologyRegistration::~TopologyRegistration() { std::erase(rows(), topology_); }

const Topology& find_topology(std::string_view name) {
  const Topology* const found = find(name);
  if (found != nullptr && is_of_gradients(found)) return *found;
  std::vector<const Topology*> known;
  std::ranges::copy_if(rows(), std::back_inserter(known), is_of_gradients);
  std::vector<std::string_view> names;
  for (const Topology* row : known) names.push_back(row->name);
  throw std::invalid_argument(fmt::format("unknown topology {}{}known are {}", io::quote(name),
                                          io::before_known(name, names), names_of(known)));
}

const Topology& find_topology(std::string_view shards_by, Operation operation) {
  const auto name_by = [&](std::string_view by) {
    return std::string(by) + "_" + to_string(operation);
  };
  const Topology* const found = find(name_by(shards_by));
  if (found != nullptr && found->operation == operation) return *found;
  std::string known(kLibrary);
  for (const Topology* const row : topologies_for(Operation::kGather)) {
    known += ", " + std::string(row->name.substr(0, row->name.find('_')));
  }
  throw std::invalid_argument("shards travel by " + known + ", not by " + io::quote(shards_by));
}

std::string known_shards_by(std::string_view text) {
  if (equal_in_any_case(text, kLibrary)) return std::string(kLibrary);
  const std::string_view row = find_topology(text, Operation::kGather).name;
  return std::string(row.substr(0, row.find('_')));
}

}  // namespace hipress::casync
