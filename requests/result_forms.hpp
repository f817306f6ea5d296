#pragma once

#include <string_view>

#include "io/document.hpp"
#include "requests/record.hpp"

/// The forms of results: adding one is a row where its record is filled, and a line here and in
/// request.cpp.
namespace hipress::requests {

/// One form of a result: the keys of an object that answers some requests.
struct ResultForm {
  std::string_view of;  ///< the request that it answers, or "error"
  std::string_view title;
  std::string_view when;     ///< a sentence: of which requests or commands the result has this form
  io::Document (*schema)();  ///< of what the record's function fills
};

extern const ResultForm kPlanForm, kBandwidthForm, kBroadcastForm;
extern const ResultForm kSimulateForm, kChakraForm, kSweepForm, kImportForm;
extern const ResultForm kReplayForm, kProfileForm, kErrorForm;

}  // namespace hipress::requests
