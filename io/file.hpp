#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::io {

struct ReadLimits;  // input_file.hpp

/// Writes `path` through a temporary file in the same folder that is renamed into place at the end.
/// If a run fails, or a signal ends it, there is no half file, and an old file stays as it was. The
/// temporary file has a random name, and the mode and, where permitted, the owner of the file that
/// it replaces. A symbolic link, a device and a pipe stay what they are. `write` fills the stream;
/// its exceptions leave this function, also those that a stream swallows elsewhere
/// (std::bad_alloc). InputError where `path` cannot be written to: a folder, a folder that is
/// missing or read-only, a file without write permission, a link or file of another user in a
/// folder that everybody may write to (/tmp). RunError where writing fails, as on a full disk.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// The error that write_file would meet before it writes: for what takes long to compute, before it
/// is computed. Leaves everything as it was.
void require_writable(const std::string& path);

/// Makes a folder for results, and the folders above it, where they are missing. InputError if that
/// fails, if the folder cannot be written to, or if the path leads through a link of another user
/// in a folder that everybody may write to.
void make_folder(const std::string& folder);

/// InputError if `path` is a file that this process has read, by whatever name: for what writes a
/// result, which must not take the place of what it was made of.
void refuse_input(const std::string& path);

/// The whole file, as InputFile (input_file.hpp) reads it within the limits. Nothing is ever cut
/// off: RunError if it does not fit into memory.
std::string read_file(const std::string& path);
std::string read_file(const std::string& path, const ReadLimits& limits);

/// The lines of a text file without their ends ("\n" or "\r\n"); a missing final newline is fine.
/// InputError with file and line for bytes that are not text: control bytes other than tab, bytes
/// that are not UTF-8.
std::vector<std::string> read_lines(const std::string& path);

/// The comma-separated fields of a line, without the blanks around them; views into `line`.
std::vector<std::string_view> split_fields(std::string_view line);

/// Finds a data file of ours ("models/vgg19.yaml", "profiler/profiles/sosp21.yaml"): in
/// HIPRESS_DATA alone if that is set, else in share/hipress of the prefix from which this code
/// was loaded, or in the source tree of this build. InputError that lists where it was looked for.
std::string data_file(const std::string& relative);

/// The names, without folder and ending, of the data files in `folder` that end so, sorted:
/// data_names("models", ".yaml") has "vgg19". Empty if there are none.
std::vector<std::string> data_names(const std::string& folder, const std::string& ending);

/// True if something other than a folder is there by that name, links followed. False also where
/// the system cannot say, as of a name that is too long: whoever opens it hears why.
bool is_file(const std::string& path);

/// The file that a user names: the data file of that name in `folder` ("models" has "vgg19"), which
/// wins over a file of that name, or `name` itself, else a data file whose name differs in hyphens
/// for underscores ("v100_100g"). A path ("./vgg19") is always itself. None for a word that names
/// none of them.
std::optional<std::string> named_file(const std::string& folder, const std::string& name);

/// 64-bit FNV-1a of `bytes` as 16 hex digits: the identity of a profile or plan in provenance
/// lines.
std::string fingerprint(const std::string& bytes);

}  // namespace hipress::io
