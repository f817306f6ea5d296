#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "io/error.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/transport/ranks.hpp"
#include "transport/file_store.hpp"
#include "transport/rendezvous.hpp"
#include "transport/seal.hpp"
#include "transport/secret_file.hpp"

namespace hipress::transport::test {
namespace {

using Catch::Matchers::Contains;
using tests::TemporaryFolder;
namespace fs = std::filesystem;

std::string root_of(const TemporaryFolder& folder) {
  return fs::path(folder.path("any")).parent_path();
}

std::string in_folder(const TemporaryFolder& folder) { return "file://" + root_of(folder); }

/// Path of the file that a rank of `job` publishes under `key`.
std::string file_of(const TemporaryFolder& folder, const JobOptions& job, int rank,
                    const std::string& key) {
  JobOptions job_only;
  job_only.job = job.job;
  return fmt::format("{}/hipress.{:016x}.{}.{}", root_of(folder), job_hash(job_only), rank, key);
}

struct Met {
  std::vector<Outcome> outcomes;
  std::vector<std::vector<std::byte>> secrets;  ///< by rank
};

/// Makes the ranks of the job meet, each with options that `adapt` has changed for it.
Met meet(const JobOptions& job, const std::function<void(JobOptions&)>& adapt) {
  Met met;
  met.secrets.resize(static_cast<std::size_t>(job.size));
  met.outcomes = run_ranks(job.size, [&](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    adapt(mine);
    Rendezvous rendezvous(mine);
    rendezvous.meet();
    met.secrets[static_cast<std::size_t>(rank)] = rendezvous.secret();
  });
  return met;
}

/// Error message of rank 0 of the job if no other rank comes.
std::string complaint(const JobOptions& job) {
  try {
    Rendezvous(job).meet();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks that were given no secret get one that is the same for all and new for each job") {
  const TemporaryFolder folder;
  JobOptions job = thread_job(4);
  if (GENERATE(true, false)) job.rendezvous = in_folder(folder);
  std::set<std::string> seen;
  for (const char* name : {"one", "other"}) {
    job.job = name;
    const Met met = meet(job, [](JobOptions&) {});
    REQUIRE(errors(met.outcomes) == "");
    CHECK(met.secrets[0].size() == 32);
    for (const auto& secret : met.secrets) CHECK(secret == met.secrets[0]);
    seen.insert(io::to_hex(met.secrets[0]));
  }
  CHECK(seen.size() == 2);
}

TEST_CASE("a given secret is bound to the job's text and is not left at the rendezvous") {
  const TemporaryFolder folder;
  JobOptions job = thread_job(2);
  job.rendezvous = in_folder(folder);
  job.job = "Jefe's";
  job.secret = "sixteen bytes or more";
  const Met met = meet(job, [](JobOptions&) {});
  REQUIRE(errors(met.outcomes) == "");
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::string data = "hipress jobJefe's";
  const io::Digest expected = io::hmac_sha256(bytes(job.secret), bytes(data));
  for (const auto& secret : met.secrets) CHECK(std::ranges::equal(secret, expected));
  CHECK_FALSE(fs::exists(file_of(folder, job, 0, "secret")));
}

TEST_CASE("ranks that do not know the secret are refused, and what they left is not interpreted") {
  JobOptions job = thread_job(2, kShort);
  job.secret = "sixteen bytes or more";
  const auto refusal = [&](const std::string& others_secret) {
    return meet(job, [&](JobOptions& o) {
      if (o.rank == 1) o.secret = others_secret;
      if (o.rank == 1) o.size = 3;  // a rank that interpreted the card would report this
    });
  };
  const Met other = refusal("another secret of 16");
  CHECK_THAT(other.outcomes[0].other_error,
             Contains("rank 0 cannot read the card of rank 1 at '" + job.rendezvous) &&
                 Contains("was not written by a rank of this job") &&
                 Contains("give every rank the same `secret_file`"));
  const Met none = refusal("");
  CHECK_THAT(none.outcomes[0].other_error,
             Contains("card of rank 1") && Contains("its writer has no `secret_file`"));
  CHECK_THAT(none.outcomes[1].other_error,
             Contains("card of rank 0") && Contains("its writer has a `secret_file`"));
}

TEST_CASE("an item is accepted only under its name, with its secret and as it was written") {
  const io::Digest secret = io::sha256("a"), other = io::sha256("b");
  const Seal seal(secret);
  const std::string text("text\n\0more", 10);
  const std::string item = seal.close("job/1/card", text);
  CHECK(seal.open("job/1/card", item) == text);
  CHECK_THROWS_WITH(seal.open("job/2/card", item), Contains("does not prove"));
  CHECK_THROWS_WITH(Seal(other).open("job/1/card", item), Contains("does not prove"));
  for (std::size_t length = 0; length < item.size(); ++length) {
    CHECK_THROWS_WITH(seal.open("job/1/card", item.substr(0, length)), Contains("not written"));
  }
  for (std::size_t at = 0; at < item.size(); ++at) {
    std::string changed = item;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK_THROWS_WITH(seal.open("job/1/card", changed), Contains("not written"));
  }
  const Seal open(std::nullopt);
  CHECK(open.open("any", open.close("job/1/card", "text")) == "text");
  CHECK_THROWS_WITH(open.open("any", "{}"), Contains("not that of a rank"));
}

TEST_CASE("what is no file of a rank is an error that names it, and is neither awaited nor read",
          "[slow]") {
  const TemporaryFolder folder;
  JobOptions job = thread_job(2, kGenerous);
  job.rendezvous = in_folder(folder);
  const std::string card = file_of(folder, job, 1, "card");
  const auto with = [&](const std::string& what) {
    CHECK_THAT(complaint(job), Contains("rank 0 cannot read the card of rank 1 at '") &&
                                   Contains(card) && Contains(what));
  };
  SECTION("a pipe") {
    REQUIRE(::mkfifo(card.c_str(), 0600) == 0);
    with("is no regular file: no rank wrote it");
  }
  SECTION("a symbolic link") {
    fs::create_symlink(folder.file("elsewhere", "{}"), card);
    with("is a symbolic link");
  }
  SECTION("a folder") {
    fs::create_directory(card);
    with("is no regular file");
  }
  SECTION("a file without end") {
    std::ofstream(card).close();
    fs::permissions(card, fs::perms::owner_read | fs::perms::owner_write);
    fs::resize_file(card, std::uintmax_t{1} << 40);
    with("is longer than 1048576 bytes");
  }
  SECTION("a file that others may write") {
    std::ofstream(card).close();
    fs::permissions(card, fs::perms::all);
    with("may be written by other users");
  }
  SECTION("another user's file") {
    std::ofstream(card).close();
    if (::chown(card.c_str(), 12345, 12345) != 0) return;  // only root may change a file's owner
    with("belongs to user 12345");
  }
  SECTION("text that is no card") {
    std::ofstream(card) << "hipress open\n[[[[";
    fs::permissions(card, fs::perms::owner_read);
    CHECK_THAT(complaint(job), Contains("rank 1 of job 'transport test' has version null"));
  }
  SECTION("another rank's card") {
    JobOptions other = job;
    other.rank = 1;
    other.timeout_s = kShort;
    CHECK_THROWS_AS(Rendezvous(other).meet(), PeerError);
    fs::rename(card, file_of(folder, job, 0, "card"));
    CHECK_THAT(complaint(job), Contains("rank 0 of job 'transport test' is taken"));
  }
}

TEST_CASE("files at the rendezvous are their writer's alone, and no rank replaces another's") {
  const TemporaryFolder folder;
  JobOptions job = thread_job(2, kShort);
  job.rendezvous = in_folder(folder);
  const ::mode_t before = ::umask(0);
  const auto first = std::make_unique<Rendezvous>(job);
  ::umask(before);
  struct stat status {};
  REQUIRE(::stat(file_of(folder, job, 0, "card").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);

  // Exactly one of many ranks with the same number is accepted.
  job.rank = 1;
  const auto outcomes = run_ranks(8, [&](int) { Rendezvous rendezvous(job); });
  const auto refused = std::ranges::count_if(outcomes, [](const Outcome& outcome) {
    return outcome.other_error.find("rank 1 of job 'transport test' is taken") != std::string::npos;
  });
  CHECK(refused == 7);
  CHECK(folder.count() == 2);  // no temporary file is left
}

TEST_CASE("a folder where everybody may remove everybody's files is refused with a remedy") {
  const TemporaryFolder folder;
  JobOptions job = thread_job(1, kShort);
  job.rendezvous = in_folder(folder);
  fs::permissions(root_of(folder), fs::perms::all);
  CHECK_THAT(complaint(job), Contains("every user may remove the files of others") &&
                                 Contains("mkdir -m 700") && Contains("chmod +t"));
  fs::permissions(root_of(folder), fs::perms::all | fs::perms::sticky_bit);
  CHECK(complaint(job) == "");
}

TEST_CASE("a secret is read from a file that other users can neither read nor guess") {
  const TemporaryFolder folder;
  const auto secret_in = [&](const std::string& content, unsigned mode) {
    const std::string path = folder.file("secret", content);
    fs::permissions(path, fs::perms(mode));
    return read_secret_file(path);
  };
  const std::string sixteen("0123456789abcd\0\n", 16);
  CHECK(secret_in(sixteen, 0600) == sixteen);
  CHECK(secret_in(sixteen, 0400) == sixteen);
  for (const unsigned mode : {0640u, 0604u, 0620u, 0602u, 0644u}) {
    CHECK_THROWS_WITH(secret_in(sixteen, mode),
                      Contains(folder.path("secret")) && Contains("chmod 600"));
    fs::permissions(folder.path("secret"), fs::perms(0600));
  }
  CHECK_THROWS_WITH(secret_in("", 0600), Contains("a secret of 0 bytes can be guessed"));
  CHECK_THROWS_WITH(secret_in("fifteen letters", 0600), Contains("give at least 16"));
  CHECK_THROWS_WITH(secret_in(std::string(65537, 'x'), 0600), Contains("at most 65536 bytes"));
  if (::geteuid() == 0) {  // only root can act as a second user
    const std::string path = folder.file("theirs", sixteen);
    fs::permissions(path, fs::perms(0600));
    REQUIRE(::chown(path.c_str(), 4321, 4321) == 0);
    CHECK_THROWS_WITH(read_secret_file(path), Contains("belongs to another user (uid 4321)"));
  }
  CHECK_THROWS_WITH(read_secret_file(folder.path("none")), Contains("No such file"));
  CHECK_THROWS_AS(read_secret_file(""), io::InputError);
  CHECK_THROWS_WITH(read_secret_file(root_of(folder)), Contains("is a folder"));
}

// Not with the address sanitizer: it runs with the undefined-behaviour sanitizer, which opens pipes
// to inspect memory.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a rank that may open no more files says so, and blames no rendezvous") {
  const TemporaryFolder folder;
  JobOptions job = thread_job(2, kShort);
  const bool redis = GENERATE(false, true);
  job.rendezvous = redis ? "redis://127.0.0.1:1" : in_folder(folder);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  // With a limit of 3, only the standard streams can be open.
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::error_code code;
  try {
    Rendezvous(job).meet();
  } catch (const std::system_error& error) {
    code = error.code();
  } catch (const std::exception&) {
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(code == std::errc::too_many_files_open);
}
#endif

}  // namespace hipress::transport::test
