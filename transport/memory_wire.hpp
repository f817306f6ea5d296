#pragma once

#include <memory>

#include "transport/wire.hpp"

namespace hipress::transport {

/// A wire between threads of one process: puts are copies. Needs a "local:" rendezvous.
std::unique_ptr<Wire> make_memory_wire(const JobOptions& options);

}  // namespace hipress::transport
