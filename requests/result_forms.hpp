#pragma once

#include <string_view>

#include "io/document.hpp"
#include "requests/record.hpp"

/// Forms of results. Adding one is a row where its record is filled, and a line here and in
/// request.cpp.
namespace hipress::requests {

/// A form of results: the keys of an object that answers some requests.
struct ResultForm {
  std::string_view of;  ///< request that it answers, or "error"
  std::string_view title;
  std::string_view when;     ///< sentence: requests or commands with this form
  io::Document (*schema)();  ///< schema of the record
};

extern const ResultForm kPlanForm, kBandwidthForm, kHostsForm, kBroadcastForm;
extern const ResultForm kSimulateForm, kChakraForm, kSweepForm, kImportForm;
extern const ResultForm kReplayForm, kProfileForm, kErrorForm;

}  // namespace hipress::requests
