#pragma once

#include <functional>
#include <optional>
#include <string>

#include "traces/byte_stream.hpp"
#include "traces/imported.hpp"

/// Import of traces of training jobs: a reader, then a model.
///
///     const Imported trace = read_trace("trace.json.gz");
///     std::vector<std::string> diagnostics;
///     const ImportedModel imported =
///         model_of(trace, "my-model", ImportOptions(), diagnostics);  // make_model.hpp
///     io::write_file("my-model.yaml", [&](std::ostream& out) {
///       write_model_yaml(out, imported);  // imported_model.hpp
///     });
namespace hipress::traces {

/// Reads the trace of one rank: PyTorch's profiler (with or without Kineto; an array of events, or
/// "traceEvents"), PyTorch's execution traces, or Chakra's. Memory grows with the activities of GPU
/// and autograd, not with the file. Throws io::InputError, with the file, for other formats and for
/// damaged or truncated files.
Imported read_trace(ByteStream& bytes);
Imported read_trace(const std::string& path);

/// Calls `finish`, and adds the file's name to its io::InputError.
std::optional<Imported> finish_in(const std::string& file,
                                  const std::function<std::optional<Imported>()>& finish);

}  // namespace hipress::traces
