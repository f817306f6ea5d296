#pragma once

#include <string>
#include <vector>

namespace hipress::plans {

/// Programs (x.pse) that a plan or sweep file may name. Such files may come from strangers, and a
/// program that they name is compiled and run as this user.
struct Trust {
  std::vector<std::string> named = {};  ///< algorithms that the user names
  bool everything = false;              ///< any program may be compiled
};

/// Checks a plan's algorithm, and returns its text. A program must be the same file, with links
/// resolved, as one in Trust::named. The result then has the spelling of Trust::named, so that
/// changing a link does not change the program that is compiled. For other programs, throws
/// io::InputError with the two remedies: to name the program, or to trust everything.
std::string trusted_algorithm(const std::string& text, const Trust& trust);

}  // namespace hipress::plans
