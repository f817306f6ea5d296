#pragma once

#include <memory>

#include "transport/wire.hpp"

namespace hipress::transport {

/// A wire over TCP whose connections prove that their ends know the job's secret (greeting.hpp).
std::unique_ptr<Wire> make_tcp_wire(const JobOptions& options);

/// Descriptors: two connections with every other rank, two more per collective, and those of peers
/// that have not authenticated yet.
Descriptors tcp_descriptors(int size);

}  // namespace hipress::transport
