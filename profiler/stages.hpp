#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "costs/profile.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/options.hpp"

/// Measures staged codecs. A *point* is a shape and a rank. Its *works* are the encodes of all
/// stages, in order, and the decode.
namespace hipress::profiler {

/// Sizes and durations of measurements of staged codecs.
struct StageRule {
  std::vector<std::int64_t> elements;  ///< approximate numbers of elements of the gradients
  std::vector<int> ranks = {1, 4, 16};
  /// Time for all iterations of a point on the CPU; at least one is run, and at most `most`. A
  /// larger budget makes times more certain; each of 2·|elements|·|ranks| points may use it up.
  double budget_s = 0.05;
  int most = 50;
  /// Total number of elements of the slices that are coded in turn. With enough of them, no slice
  /// is still cached when its turn comes, as in training with a whole model.
  std::int64_t cold = std::int64_t{1} << 24;
};

/// Rule with 2^14 … 2^24 elements; quick: fewer sizes, up to 2^22.
StageRule stage_rule(Effort effort);

/// Makes the codec for a rank.
using CodecOfRank = std::function<std::shared_ptr<const kernels::Codec>(int rank)>;

struct StagePoint {
  std::vector<std::int64_t> shape;
  int rank = 0;
  std::vector<costs::StageWork> works;
  std::int64_t elements() const { return kernels::elements_of(shape); }
};

/// Points for each rank and number of elements: a square matrix, and one with sides 1:8,
/// alternately wide and tall. Shapes that the codec refuses are left out.
std::vector<StagePoint> stage_points(const CodecOfRank& codec_of, const StageRule& rule);

/// Those ranks of the rule that the algorithm accepts; {0} for an algorithm without a rank.
std::vector<int> ranks_of(const std::string& algorithm, const StageRule& rule);
/// The algorithm's text with that rank; for rank 0, the text itself.
std::string text_of_rank(const std::string& algorithm, int rank);

/// Slices of one shape, each with the memory that the works of a staged codec use.
class StagedSlices {
 public:
  /// `arena` has bytes() bytes of zeroed memory on the codec's device, aligned to 256 bytes.
  StagedSlices(const kernels::Codec& codec, const std::vector<std::int64_t>& shape, int count,
               std::byte* arena);
  static std::int64_t bytes(const kernels::Codec& codec, const std::vector<std::int64_t>& shape,
                            int count);

  int count() const { return static_cast<int>(slices_.size()); }
  int works() const { return stages_ + 1; }
  std::int64_t elements() const { return kernels::elements_of(shape_); }
  float* values(int slice) const { return slices_[static_cast<std::size_t>(slice)].values; }
  /// Runs or enqueues one work of a slice. The step's earlier works must have run, or be enqueued.
  void run(int work, int slice, std::uint64_t step, void* stream = nullptr) const;

 private:
  struct Pointers {
    float* values = nullptr;
    std::vector<float*> factors, states;
  };

  const kernels::Codec& codec_;
  const std::vector<std::int64_t> shape_;
  int stages_ = 0;
  std::vector<Pointers> slices_;
};

/// Number of slices that are coded in turn: 1 to 256, with about StageRule::cold elements in all.
int slices_in_turn(const StagePoint& point, const StageRule& rule);

/// Seconds by work and iteration. An iteration is two steps of all slices of a thread, since a
/// codec may alternate between steps.
using StageTimes = std::vector<std::vector<std::vector<double>>>;

/// Times a point on `threads` threads at once. `clock` returns the current time in seconds.
StageTimes time_stages(const kernels::Codec& codec, const StagePoint& point, const StageRule& rule,
                       int threads, const std::function<double()>& clock);
std::function<double()> steady_clock();

/// Measurements of one algorithm on the CPU.
struct StageSeries {
  std::vector<StagePoint> points;
  std::vector<StageTimes> times;  ///< per point, over all passes
  std::vector<double> passes_s;   ///< per pass: sum of the median times of all works and points
};

/// Adds a pass, on the first `coding` ranks at once. All processes of a job get the same times.
void sample_stages(const CodecOfRank& codec_of, const StageRule& rule, const Options& options,
                   int coding, const std::function<double()>& clock, StageSeries& series);

/// Fits each work, and keeps its samples in the profile as "NAME.stage0.rank4" …
/// "NAME.decode.rank4". Returns the costs. `samples` are by point and work.
costs::CodecCosts fit_and_keep_stages(const std::string& algorithm,
                                      const std::vector<StagePoint>& points,
                                      const std::vector<std::vector<costs::Sample>>& samples,
                                      costs::Profile& profile);

/// Fits a series in the same way, with mean times multiplied by `factor`.
costs::CodecCosts fit_and_keep_stages(const std::string& algorithm, const StageSeries& series,
                                      double factor, costs::Profile& profile);

}  // namespace hipress::profiler
