#pragma once

#include "kernels/compll/ast.hpp"

namespace hipress::compll {

/// Parses the functions of a source by the grammar of language.md. Throws CompileError for a syntax
/// error, nesting deeper than 200, or a tree higher than 1000. The source must outlive the result.
ast::File parse(const Source& source);

}  // namespace hipress::compll
