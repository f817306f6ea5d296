#include "tools/options/secret.hpp"

#include "transport/secret_file.hpp"

namespace hipress::tools {

void SecretOptions::declare(CLI::App& app) {
  app.add_option("--secret-file", file,
                 "file with a secret of at least 16 bytes (mode 0600), the same for every rank; "
                 "default: rank 0 leaves a secret at the rendezvous");
  app.add_flag("--insecure", insecure,
               "let --transport gloo, which authenticates nobody, listen beyond loopback; only for "
               "networks that nobody else can reach");
}

void SecretOptions::read() {
  if (file) secret = transport::read_secret_file(*file);
}

void SecretOptions::apply(transport::JobOptions& job) const {
  job.secret = secret;
  job.insecure = insecure;
}

}  // namespace hipress::tools
