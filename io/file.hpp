#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace hipress::io {

/// Writes `path` through a temporary file in the same folder that is renamed into place at the end,
/// so an interrupted or failing run leaves no half file and an old file stays until then.
/// `write` fills the stream; InputError if the folder cannot be written to.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// The whole file; InputError if it cannot be read.
std::string read_file(const std::string& path);

/// The lines of a text file without their ends ("\n" or "\r\n"); a missing final newline is fine.
std::vector<std::string> read_lines(const std::string& path);

/// Finds a data file of ours ("models/vgg19.yaml", "profiler/profiles/sosp21.yaml"): beside the
/// source tree of this build, or in ../share/hipress of the running binary. InputError if neither.
std::string data_file(const std::string& relative);

/// 64-bit FNV-1a of `bytes` as 16 hex digits: the identity of a profile or plan in provenance
/// lines.
std::string fingerprint(const std::string& bytes);

}  // namespace hipress::io
