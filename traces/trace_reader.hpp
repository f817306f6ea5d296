#pragma once

#include <functional>
#include <optional>
#include <string>

#include "traces/byte_stream.hpp"
#include "traces/imported.hpp"

namespace hipress::traces {

/// Reads the trace of one rank, in one of three formats: of PyTorch's profiler (with or without
/// Kineto), as an array of events or with "traceEvents"; PyTorch's execution traces; Chakra's.
/// Memory grows with the activities of the GPU and of autograd, not with the bytes. io::InputError
/// that names the file if it has none of these formats, is damaged or was cut off.
Imported read_trace(ByteStream& bytes);
Imported read_trace(const std::string& path);

/// Calls `finish`, and adds the file's name to its io::InputError.
std::optional<Imported> finish_in(const std::string& file,
                                  const std::function<std::optional<Imported>()>& finish);

}  // namespace hipress::traces
