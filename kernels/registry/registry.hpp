#pragma once

#include "kernels/codec/codec.hpp"

namespace hipress::kernels {

/// Appends an algorithm to the table, where make_codec() and all readers of algorithms() find it.
/// Call it before any other thread reads the table and before anything holds references to rows.
/// Throws std::invalid_argument for a name that is taken or that a list of algorithms cannot hold,
/// for a row without `make`, and for a row whose parameters repeat a name.
void register_algorithm(AlgorithmRow row);

}  // namespace hipress::kernels
