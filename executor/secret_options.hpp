#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "transport/endpoint.hpp"

namespace hipress::executor {

/// The options of tools whose ranks connect over a network: how these know each other.
struct SecretOptions {
  std::optional<std::string> file;  ///< --secret-file
  bool insecure = false;            ///< --insecure

  void declare(CLI::App& app);
  /// Sets the secret and what is permitted. io::InputError with the remedy if the file is of no
  /// use.
  void apply(transport::JobOptions& job) const;
};

}  // namespace hipress::executor
