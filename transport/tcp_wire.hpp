#pragma once

#include <memory>

#include "transport/wire.hpp"

namespace hipress::transport {

/// A wire over TCP whose connections prove that their ends know the job's secret (greeting.hpp).
std::unique_ptr<Wire> make_tcp_wire(const JobOptions& options);

/// Two connections with every other rank, and two more for a collective; and strangers that have
/// yet to prove who they are.
Descriptors tcp_descriptors(int size);

}  // namespace hipress::transport
