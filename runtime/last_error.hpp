#pragma once

#include "runtime/hipress.h"

namespace hipress::runtime {

/// Records an error for hipress_last_error() on this thread; returns the status.
hipress_status note(hipress_status status, const char* text, int culprit = -1,
                    hipress_loss loss = HIPRESS_FAULT) noexcept;

}  // namespace hipress::runtime
