#pragma once

#include <memory>

#include "transport/wire.hpp"

namespace hipress::transport {

/// A wire over TCP, made of gloo's bound buffers. Also sets SIGPIPE to be ignored, if the process
/// has not decided about it: gloo writes to sockets whose other end may be gone.
std::unique_ptr<Wire> make_gloo_wire(const JobOptions& options);

/// Two connections with every other rank, and one more for a collective.
Descriptors gloo_descriptors(int size);

}  // namespace hipress::transport
