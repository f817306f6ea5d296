#pragma once

#include "kernels/codec/codec.hpp"

namespace hipress::kernels {

/// Adds an algorithm to the table, behind those that are there: from then on make_codec() and all
/// that reads algorithms() know it by its row. Call it before any other thread of the process reads
/// the table and before anything holds references to rows. std::invalid_argument for a name that is
/// taken or that no list of algorithms can hold, for a row without `make`, and for one whose
/// parameters repeat a name.
void register_algorithm(AlgorithmRow row);

}  // namespace hipress::kernels
