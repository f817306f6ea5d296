#pragma once

#include <string>
#include <vector>

#include "kernels/compll/compiler.hpp"

namespace hipress::compll {

/// What of an operator is wanted.
enum class WrapperPart {
  kWrapper,       ///< a header: the functions that do the work, on the framework's tensors
  kRegistration,  ///< a source that includes that header and registers them
  kBoth,          ///< one source with both
};

/// "pytorch", … : those that there is a wrapper for.
std::vector<std::string> framework_names();

/// The name of the file for a part, "tbq_pytorch.cpp" where `stem` is "tbq".
std::string wrapper_file(const std::string& stem, const std::string& framework, WrapperPart part);

/// The text of the file that wrapper_file() names: a program as operators of a framework. `origin`
/// is the program's file, for error messages. io::InputError if the program has no decoder, or if a
/// parameter has a name that the operators need for something else.
std::string wrap(const Compiled& compiled, const std::string& origin, const std::string& stem,
                 const std::string& framework, WrapperPart part);

}  // namespace hipress::compll
