#pragma once

namespace hipress::tests {

/// Adds "upperhalf" to the table of algorithms, once per process.
void register_upper_half();

}  // namespace hipress::tests
