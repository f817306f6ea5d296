#pragma once

#include <functional>
#include <optional>
#include <string>

#include "traces/byte_stream.hpp"
#include "traces/imported.hpp"

/// Imports traces of training jobs: first read a trace, then make a model.
///
///     const Imported trace = read_trace("trace.json.gz");
///     std::vector<std::string> diagnostics;
///     const ImportedModel imported =
///         model_of(trace, "my-model", ImportOptions(), diagnostics);  // make_model.hpp
///     io::write_file("my-model.yaml", [&](std::ostream& out) {
///       write_model_yaml(out, imported);  // imported_model.hpp
///     });
namespace hipress::traces {

/// Reads the trace of one rank. It may come from PyTorch's profiler (with or without Kineto; an
/// array of events, or "traceEvents"), be one of PyTorch's execution traces, or one of Chakra's.
/// Memory grows with the activities of the GPU and of autograd, not with the file. Throws
/// io::InputError, which names the file, for other formats and for damaged or truncated files.
Imported read_trace(ByteStream& bytes);
Imported read_trace(const std::string& path);

/// Calls `finish`. Adds the file's name to an io::InputError that it throws.
std::optional<Imported> finish_in(const std::string& file,
                                  const std::function<std::optional<Imported>()>& finish);

}  // namespace hipress::traces
