#pragma once

#include "runtime/hipress.h"

namespace hipress::runtime {

/// Keeps what was wrong for hipress_last_error() on this thread, and returns the status.
hipress_status note(hipress_status status, const char* text, int culprit = -1,
                    hipress_loss loss = HIPRESS_FAULT) noexcept;

}  // namespace hipress::runtime
