#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::io {

struct ReadLimits;  // input_file.hpp

/// Writes a file atomically: `write` fills a temporary file in the same folder, which is then
/// renamed to `path`. A failed or killed run leaves no partial file, and an old file unchanged. The
/// temporary file has a random name, and takes mode and, where permitted, owner from the file that
/// it replaces. Symbolic links, devices and pipes are written through, not replaced.
///
/// Exceptions of `write` propagate, including those that a stream would swallow (std::bad_alloc).
/// Throws InputError if `path` cannot be written to: it is a folder, its folder is missing or
/// read-only, the file lacks write permission, or a link or file of another user lies in a folder
/// that everybody can write to (/tmp). Throws RunError if writing fails, as on a full disk.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Throws the error that write_file() would throw before it writes. Call it before a long
/// computation.
void require_writable(const std::string& path);

/// Makes a folder for results, and missing parents. Throws InputError if that fails, if the folder
/// cannot be written to, or if the path leads through another user's link in a folder that
/// everybody can write to.
void make_folder(const std::string& folder);

/// Throws InputError if this process has read that file under any name: a result must not overwrite
/// it.
void refuse_input(const std::string& path);

/// Whole content of a file, read by InputFile (input_file.hpp) within the limits. Within an
/// InputScope, later calls for the same pipe return the same content. Throws RunError if it does
/// not fit into memory.
std::string read_file(const std::string& path);
std::string read_file(const std::string& path, const ReadLimits& limits);

/// Lines of a text file without "\n" or "\r\n". The final newline is optional. Throws InputError,
/// with file and line, for control bytes other than tab and for bytes that are not UTF-8.
std::vector<std::string> read_lines(const std::string& path);

/// Comma-separated fields of a line, without surrounding blanks. They are views into `line`.
std::vector<std::string_view> split_fields(std::string_view line);

/// Path of a shipped data file ("models/vgg19.yaml", "profiler/profiles/sosp21.yaml"). Searches
/// only HIPRESS_DATA if that is set, else share/hipress of the prefix from which this code was
/// loaded, then the source tree of this build. Throws InputError, which lists them, if it finds
/// none.
std::string data_file(const std::string& relative);

/// Sorted names of the shipped data files in `folder` with that ending, without folder and ending:
/// data_names("models", ".yaml") has "vgg19". Empty if there are none.
std::vector<std::string> data_names(const std::string& folder, const std::string& ending);

/// True if `path`, with links followed, exists and is not a folder. False also if the system cannot
/// tell, as for a name that is too long: opening the file then reports the reason.
bool is_file(const std::string& path);

/// Path of the file that a user names: the data file of that exact name in `folder` ("vgg19" in
/// "models"), else the file `name`, else a data file whose name differs only in hyphens and
/// underscores ("v100_100g"). A path ("./vgg19") always stands for itself. Empty if a plain word
/// matches no file.
std::optional<std::string> named_file(const std::string& folder, const std::string& name);

/// 64-bit FNV-1a of `bytes` as 16 hexadecimal digits. Identifies profiles and plans in provenance
/// lines.
std::string fingerprint(const std::string& bytes);

}  // namespace hipress::io
