#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "transport/endpoint.hpp"

namespace hipress::tools {

/// The options of tools whose ranks connect over a network: how these know each other.
struct SecretOptions {
  std::optional<std::string> file;  ///< --secret-file
  bool insecure = false;            ///< --insecure
  std::string secret;               ///< what the file holds

  void declare(CLI::App& app);
  /// Reads the file, if one is given: to be called before any work. io::InputError with the remedy
  /// if it is of no use.
  void read();
  /// Sets the secret and what is permitted.
  void apply(transport::JobOptions& job) const;
};

}  // namespace hipress::tools
