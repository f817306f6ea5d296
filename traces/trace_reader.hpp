#pragma once

#include <string>

#include "traces/byte_stream.hpp"
#include "traces/imported.hpp"

namespace hipress::traces {

/// Reads the trace of one rank: PyTorch's profiler (Kineto, and the profiler that builds without
/// Kineto have), as an array of events or with "traceEvents"; PyTorch's execution traces; Chakra's.
/// Memory grows with the activities of the GPU and of autograd, not with the bytes. io::InputError
/// that names the file for what is none of these, is damaged or was cut off.
Imported read_trace(ByteStream& bytes);
Imported read_trace(const std::string& path);

}  // namespace hipress::traces
