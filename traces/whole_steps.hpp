#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/imported.hpp"
#include "traces/imported_model.hpp"
#include "traces/model_parts.hpp"

/// Selection of whole and similar steps of a job that averages gradients.
namespace hipress::traces {

using Parts = std::vector<TracedGradient> TracedStep::*;

/// Members of a step that become the model's gradients, and their names.
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

/// Whole steps: without those that have no backward, and without partial steps at the ends of the
/// trace.
Steps whole_steps(const Imported& trace, const ImportOptions& options,
                  std::vector<std::string>& diagnostics);

/// Steps with the last one's layout.
Steps alike_last(const Steps& steps, Parts parts, std::vector<std::string>& diagnostics);

}  // namespace hipress::traces
