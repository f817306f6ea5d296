#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "transport/endpoint.hpp"
#include "transport/gloo_wire.hpp"
#include "transport/memory_wire.hpp"
#include "transport/session.hpp"
#include "transport/tcp_wire.hpp"

namespace hipress::transport {
namespace {

constexpr std::array kRows{
    TransportRow{
        "tcp", "TCP between ranks that prove to know the job's secret: processes, or threads",
        tcp_descriptors,
        [](const JobOptions& options) { return connect_over(options, make_tcp_wire(options)); }},
    TransportRow{
        "gloo",
        "TCP through gloo, which takes anybody for a rank: for trusted networks, to compare",
        gloo_descriptors,
        [](const JobOptions& options) { return connect_over(options, make_gloo_wire(options)); }},
    TransportRow{
        "memory", "copies inside one process, for tests: ranks are its threads",
        [](int) { return Descriptors{}; },
        [](const JobOptions& options) { return connect_over(options, make_memory_wire(options)); }},
};

}  // namespace

std::span<const TransportRow> transports() { return kRows; }

const TransportRow& find_transport(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &TransportRow::name);
  if (found != kRows.end()) return *found;
  std::vector<std::string_view> names;
  for (const TransportRow& row : kRows) names.push_back(row.name);
  throw io::InputError("there is no transport '" + std::string(name) + "'" +
                       io::suggestion(name, names));
}

}  // namespace hipress::transport
