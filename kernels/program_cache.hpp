#pragma once

#include <string>

namespace hipress::kernels {

/// The folder that "kernels/…" is included from.
std::string include_root();

/// The file in io::cache_folder(), which is made, for what is compiled from `inputs` (code,
/// compiler, flags) and the headers of kernels/: another one for other contents of any of them.
/// Whoever misses it there writes it beside and renames it into place, since several processes may
/// do so at a time. `ending` is ".so" or ".cubin".
std::string cache_file(const std::string& inputs, const std::string& ending);

}  // namespace hipress::kernels
