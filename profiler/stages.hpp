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

/// Measuring staged codecs. A *point* is a shape and a rank; its *works* are the encodes of all
/// stages, in their order, and then the decode.
namespace hipress::profiler {

/// What staged codecs are measured of, and for how long.
struct StageRule {
  std::vector<std::int64_t> elements;  ///< of the gradients, about
  std::vector<int> ranks = {1, 4, 16};
  /// On the CPU, iterations of a point take so long together; there is at least one, and at most
  /// `most`. Larger: surer, and longer by up to this for each of 2·|elements|·|ranks| points.
  double budget_s = 0.05;
  int most = 50;
  /// Elements of the slices that are coded in turn, so that all of them are cold, as they are when
  /// an iteration of a whole model comes back to a gradient.
  std::int64_t cold = std::int64_t{1} << 24;
};

/// 2^14 … 2^24 elements; when it must be quick, fewer sizes up to 2^22.
StageRule stage_rule(Effort effort);

/// Makes the codec for a rank.
using CodecOfRank = std::function<std::shared_ptr<const kernels::Codec>(int rank)>;

struct StagePoint {
  std::vector<std::int64_t> shape;
  int rank = 0;
  std::vector<costs::StageWork> works;
  std::int64_t elements() const { return kernels::elements_of(shape); }
};

/// Of each number of elements, a square matrix and one of 1:8, which is upright and lying in turn;
/// of each rank. What the codec refuses is left out.
std::vector<StagePoint> stage_points(const CodecOfRank& codec_of, const StageRule& rule);

/// The ranks of the rule that the algorithm can have; one that has no rank is measured as it is, as
/// of rank 0.
std::vector<int> ranks_of(const std::string& algorithm, const StageRule& rule);
/// The algorithm's text for such a rank.
std::string text_of_rank(const std::string& algorithm, int rank);

/// Slices of one shape, each with all that a staged codec's works touch.
class StagedSlices {
 public:
  /// `arena` is 256-byte aligned memory of the codec's device, of bytes(), all zero.
  StagedSlices(const kernels::Codec& codec, const std::vector<std::int64_t>& shape, int count,
               std::byte* arena);
  static std::int64_t bytes(const kernels::Codec& codec, const std::vector<std::int64_t>& shape,
                            int count);

  int count() const { return static_cast<int>(slices_.size()); }
  int works() const { return stages_ + 1; }
  std::int64_t elements() const { return kernels::elements_of(shape_); }
  float* values(int slice) const { return slices_[static_cast<std::size_t>(slice)].values; }
  /// Runs or enqueues a work of a slice; the earlier works of the step have left their factors.
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

/// How many slices are coded in turn.
int slices_in_turn(const StagePoint& point, const StageRule& rule);

/// Seconds by work and iteration. An iteration is two steps of all slices of a thread, since a
/// codec may do something else every other step.
using StageTimes = std::vector<std::vector<std::vector<double>>>;

/// Times a point on so many threads at once, by a clock in seconds.
StageTimes time_stages(const kernels::Codec& codec, const StagePoint& point, const StageRule& rule,
                       int threads, const std::function<double()>& clock);
std::function<double()> steady_clock();

/// What was measured of one algorithm on the CPU.
struct StageSeries {
  std::vector<StagePoint> points;
  std::vector<StageTimes> times;  ///< by point, of all passes together
  std::vector<double> passes_s;   ///< of each pass, the sum of its medians
};

/// One more pass, on the first `coding` ranks at once. All processes of a job get the same times.
void sample_stages(const CodecOfRank& codec_of, const StageRule& rule, const Options& options,
                   int coding, const std::function<double()>& clock, StageSeries& series);

/// Fits each work, keeps its samples in the profile as "NAME.stage0.rank4" … "NAME.decode.rank4",
/// and returns the costs. `samples` are by point and work.
costs::CodecCosts fit_and_keep_stages(const std::string& algorithm,
                                      const std::vector<StagePoint>& points,
                                      const std::vector<std::vector<costs::Sample>>& samples,
                                      costs::Profile& profile);

/// The same of a series, all of whose times are taken to be `factor` times as long.
costs::CodecCosts fit_and_keep_stages(const std::string& algorithm, const StageSeries& series,
                                      double factor, costs::Profile& profile);

}  // namespace hipress::profiler
