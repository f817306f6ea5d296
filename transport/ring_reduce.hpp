#pragma once

#include <cstddef>
#include <memory>

#include "transport/socket.hpp"
#include "transport/wire.hpp"

namespace hipress::transport {

/// Makes a ring all-reduce: a reduce-scatter, then an all-gather, each of size − 1 steps. In a
/// step, every rank sends to the next one and receives from the previous one (Patarasuk and Yuan,
/// "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009). Each sum is
/// computed on one rank and passed on, so all ranks have the same bits. Both sockets are
/// non-blocking.
std::shared_ptr<WireCollective> make_ring_reduce(int rank, int size, Socket next, Socket previous,
                                                 double timeout_s);

}  // namespace hipress::transport
