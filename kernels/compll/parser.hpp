#pragma once

#include "kernels/compll/ast.hpp"

namespace hipress::compll {

/// The functions of a source, by the grammar of language.md. CompileError where the text departs
/// from it, or where anything is nested more than 200 deep. The source must outlive the result.
ast::File parse(const Source& source);

}  // namespace hipress::compll
