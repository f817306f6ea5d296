#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Data for pictures, from a pilot's file. Plans do not depend on it.
namespace hipress::planner {

/// Point of a smoothed loss curve.
struct LossPoint {
  std::int64_t step = 0;
  double loss = 0;
};

struct PilotPictures {
  std::vector<LossPoint> curve;  ///< DDP's losses; empty for files of earlier versions
  /// Relative errors that the plans' means would have without residuals of earlier steps (`error`
  /// in the file), by algorithm and gradient: the root mean square over the steps at which the
  /// pilot measured them.
  std::map<std::string, std::map<std::string, double>> errors;
};

/// Reads the data for pictures from a pilot's file, which read_pilot() must accept.
PilotPictures read_pilot_pictures(const std::string& path);

}  // namespace hipress::planner
