#include <fmt/format.h>

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
        "tcp", "TCP; connections authenticate each other by the job's secret", tcp_descriptors,
        [](const JobOptions& options) { return connect_over(options, make_tcp_wire(options)); }},
#ifdef HIPRESS_HAVE_GLOO
    TransportRow{
        "gloo", "TCP through gloo; without authentication", gloo_descriptors,
        [](const JobOptions& options) { return connect_over(options, make_gloo_wire(options)); }},
#endif
    TransportRow{
        "memory", "copies between threads of one process", [](int) { return Descriptors{}; },
        [](const JobOptions& options) { return connect_over(options, make_memory_wire(options)); }},
};

}  // namespace

std::span<const TransportRow> transports() { return kRows; }

std::string describe_transports() {
  std::string all;
  for (const TransportRow& row : kRows) {
    all += fmt::format("{}{} ({})", all.empty() ? "" : "; ", row.name, row.help);
  }
  return all;
}

const TransportRow& find_transport(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &TransportRow::name);
  if (found != kRows.end()) return *found;
#ifndef HIPRESS_HAVE_GLOO
  if (name == "gloo") {
    throw io::InputError(
        "this build has no transport gloo, as wheels have none: build with -DHIPRESS_GLOO=ON");
  }
#endif
  std::vector<std::string_view> names;
  for (const TransportRow& row : kRows) names.push_back(row.name);
  throw io::InputError("there is no transport " + io::quote(name) + io::suggestion(name, names));
}

}  // namespace hipress::transport
