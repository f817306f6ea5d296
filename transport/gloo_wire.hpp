#pragma once

#include <memory>

#include "transport/wire.hpp"

namespace hipress::transport {

/// A wire over TCP with gloo's bound buffers. Ignores SIGPIPE, unless the process has set its
/// disposition: gloo writes to sockets whose other end may be gone.
std::unique_ptr<Wire> make_gloo_wire(const JobOptions& options);

/// Descriptors: two connections with every other rank, and one more per collective.
Descriptors gloo_descriptors(int size);

}  // namespace hipress::transport
