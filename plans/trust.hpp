#pragma once

#include <string>
#include <vector>

namespace hipress::plans {

/// Which programs (x.pse) a plan or sweep may bring. Such files are data that may come from
/// anybody, and a program that they name would be compiled and run as this user.
struct Trust {
  std::vector<std::string> named = {};  ///< algorithms that the user names
  bool everything = false;              ///< any program may be compiled
};

/// The algorithm that a plan's text stands for: the same text, unless it names a program. A program
/// must be the same file, with links resolved, as one in Trust::named. The result spells it as that
/// does, so that nothing else is compiled if a link changes or lies beside another file.
/// io::InputError with both remedies for other programs.
std::string trusted_algorithm(const std::string& text, const Trust& trust);

}  // namespace hipress::plans
