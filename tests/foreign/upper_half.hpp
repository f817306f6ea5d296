#pragma once

namespace hipress::tests {

/// Adds "upperhalf" to the table of algorithms, once for the process.
void register_upper_half();

}  // namespace hipress::tests
