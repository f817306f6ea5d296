#include "executor/secret_options.hpp"

#include "transport/secret_file.hpp"

namespace hipress::executor {

void SecretOptions::declare(CLI::App& app) {
  app.add_option("--secret-file", file,
                 "a file with at least 16 bytes that only this job's ranks know (mode 0600), the "
                 "same for every rank; default: the rendezvous hands out a secret");
  app.add_flag("--insecure", insecure,
               "let --transport gloo, which takes whoever connects for a rank, listen beyond "
               "loopback: on a network that nobody else can reach");
}

void SecretOptions::read() {
  if (file) secret = transport::read_secret_file(*file);
}

void SecretOptions::apply(transport::JobOptions& job) const {
  job.secret = secret;
  job.insecure = insecure;
}

}  // namespace hipress::executor
