#pragma once

#include <memory>

#include "transport/wire.hpp"

namespace hipress::transport {

/// A wire between ranks that are threads of one process: puts are copies. Only with a "local:"
/// rendezvous.
std::unique_ptr<Wire> make_memory_wire(const JobOptions& options);

}  // namespace hipress::transport
