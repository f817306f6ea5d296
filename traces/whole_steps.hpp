#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/imported.hpp"
#include "traces/imported_model.hpp"
#include "traces/model_parts.hpp"

/// Steps of a job that averages gradients: which of them are whole and alike, and what of them the
/// model has.
namespace hipress::traces {

using Parts = std::vector<TracedGradient> TracedStep::*;

/// Part of a step that the model's gradients are, and their names.
struct PartsRow {
  Parts parts;
  const char* name;    ///< of one, before its number
  const char* plural;  ///< in messages
};
inline constexpr PartsRow kGradients{&TracedStep::gradients, "gradient", "gradients"};
inline constexpr PartsRow kBuckets{&TracedStep::buckets, "bucket", "buckets"};
inline constexpr PartsRow kAllReduces{&TracedStep::other_all_reduces, "bucket", "all-reduces"};

/// Throws io::Unmet unless all steps have as many elements.
void check_conserved(const Steps& steps, Parts parts, std::string_view what);

/// The steps that are whole: those without backward are left out, and at the trace's ends those
/// with a part of the gradients of the others.
Steps whole_steps(const Imported& trace, const ImportOptions& options,
                  std::vector<std::string>& diagnostics);

/// Steps with the last one's layout.
Steps alike_last(const Steps& steps, Parts parts, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
