#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/imported.hpp"
#include "traces/imported_model.hpp"
#include "traces/model_parts.hpp"

/// Selection of steps that are whole and alike, for jobs that average gradients.
namespace hipress::traces {

using Parts = std::vector<TracedGradient> TracedStep::*;

/// Member of a step whose entries become the model's gradients, and names for it.
struct PartsRow {
  Parts parts;
  const char* name;    ///< singular, before a number
  const char* plural;  ///< plural, in messages
};
inline constexpr PartsRow kGradients{&TracedStep::gradients, "gradient", "gradients"};
inline constexpr PartsRow kBuckets{&TracedStep::buckets, "bucket", "buckets"};
inline constexpr PartsRow kAllReduces{&TracedStep::other_all_reduces, "bucket", "all-reduces"};

/// Throws io::Unmet unless all steps have the same number of elements.
void check_conserved(const Steps& steps, Parts parts, std::string_view what);

/// Whole steps: those that have gradients, without partial steps at the ends of the trace.
Steps whole_steps(const Imported& trace, const ImportOptions& options,
                  std::vector<std::string>& diagnostics);

/// Steps that have the layout of the last one.
Steps alike_last(const Steps& steps, Parts parts, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
