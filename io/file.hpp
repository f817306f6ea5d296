#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::io {

/// Writes `path` through a temporary file in the same folder that is renamed into place at the end,
/// so an interrupted or failing run leaves no half file and an old file stays until then. A
/// symbolic link, a device and a pipe stay what they are. `write` fills the stream; InputError if
/// the folder cannot be written to.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// InputError that write_file would meet: for what takes long to compute, before it is computed.
void require_writable(const std::string& path);

/// The whole file; InputError if it cannot be read.
std::string read_file(const std::string& path);

/// The lines of a text file without their ends ("\n" or "\r\n"); a missing final newline is fine.
/// InputError with file and line for what is no text: control bytes other than tab, bytes that are
/// not UTF-8.
std::vector<std::string> read_lines(const std::string& path);

/// The comma-separated fields of a line, without the blanks around them; views into `line`.
std::vector<std::string_view> split_fields(std::string_view line);

/// Finds a data file of ours ("models/vgg19.yaml", "profiler/profiles/sosp21.yaml"): in
/// HIPRESS_DATA alone if that is set, else in ../share/hipress of the running binary, or in the
/// source tree of this build. InputError that lists where it was looked for.
std::string data_file(const std::string& relative);

/// The names, without folder and ending, of the data files in `folder` that end so, sorted:
/// data_names("models", ".yaml") has "vgg19". Empty if there are none.
std::vector<std::string> data_names(const std::string& folder, const std::string& ending);

/// 64-bit FNV-1a of `bytes` as 16 hex digits: the identity of a profile or plan in provenance
/// lines.
std::string fingerprint(const std::string& bytes);

}  // namespace hipress::io
