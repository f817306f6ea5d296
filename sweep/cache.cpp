#include "sweep/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "io/digest.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/input_file.hpp"

namespace hipress::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJournal = ".journal";

/// What a line holds behind its key: "1 iteration forward compute tasks host links wire", of
/// which the last three are "-" where nobody has asked. 17 digits bring every number back.
std::string text_of(const Outcome& outcome) {
  if (!outcome.possible) return "0";
  std::string text = fmt::format("1 {} {} {} {}", outcome.iteration.count(),
                                 outcome.forward.count(), outcome.compute.count(), outcome.tasks);
  if (!outcome.sensitivity) return text + " - - -";
  const auto& [host_s, links_s, wire_s] = *outcome.sensitivity;
  return text + fmt::format(" {:.17g} {:.17g} {:.17g}", host_s, links_s, wire_s);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(' ');
    words.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

template <typename Number>
bool parse(std::string_view text, Number& number) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last;
}

std::optional<Outcome> outcome_of(std::span<const std::string_view> words) {
  if (words.size() == 1 && words[0] == "0") return Outcome{.possible = false};
  if (words.size() != 8 || words[0] != "1") return std::nullopt;
  std::int64_t times[3] = {};
  Outcome outcome;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!parse(words[i + 1], times[i])) return std::nullopt;
  }
  if (!parse(words[4], outcome.tasks)) return std::nullopt;
  outcome.iteration = casync::Picoseconds(times[0]);
  outcome.forward = casync::Picoseconds(times[1]);
  outcome.compute = casync::Picoseconds(times[2]);
  if (words[5] == "-" && words[6] == "-" && words[7] == "-") return outcome;
  Sensitivity sensitivity;
  if (!parse(words[5], sensitivity.host_s) || !parse(words[6], sensitivity.links_s) ||
      !parse(words[7], sensitivity.wire_s)) {
    return std::nullopt;
  }
  outcome.sensitivity = sensitivity;
  return outcome;
}

}  // namespace

Cache::Cache(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  if (!fs::exists(folder_, error)) return;
  io::make_folder(folder_);        // or it is none, or cannot be written to
  std::set<std::string> journals;  // in an order of their own
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() == kJournal) journals.insert(entry.path().string());
  }
  if (error) io::refuse_file(folder_, "read", error.value());
  for (const std::string& journal : journals) read(journal);
}

/// Lines are "key outcome check": the last one may be cut off where its process was killed.
void Cache::read(const std::string& journal) {
  const std::string content = io::read_file(journal);
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = content.find('\n', begin);
    if (end == std::string::npos) return;
    const std::string_view line = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t check = line.rfind(' ');
    if (check == std::string_view::npos) continue;
    const std::string_view said = line.substr(0, check);
    if (io::fingerprint(std::string(said)) != line.substr(check + 1)) continue;
    const std::vector<std::string_view> words = words_of(said);
    const auto outcome = outcome_of(std::span(words).subspan(1));
    if (!outcome) continue;
    Outcome& known = outcomes_[std::string(words[0])];
    if (!known.sensitivity) known = *outcome;
  }
}

const Outcome* Cache::find(const std::string& key) const {
  const auto found = outcomes_.find(key);
  return found == outcomes_.end() ? nullptr : &found->second;
}

void Cache::open_journal() {
  io::make_folder(folder_);
  journal_name_ = fmt::format("{}/{}{}", folder_, io::to_hex(io::random_bytes(8)), kJournal);
  journal_ = io::Descriptor(
      ::open(journal_name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!journal_) io::refuse_file(journal_name_, "written", errno);
}

void Cache::put(const std::string& key, const Outcome& outcome) {
  const std::string said = key + ' ' + text_of(outcome);
  const std::string line = fmt::format("{} {}\n", said, io::fingerprint(said));
  const std::lock_guard lock(mutex_);
  if (!journal_) open_journal();
  if (io::write_all(journal_, line)) return;
  throw io::RunError(fmt::format("{}: cannot be written: {}; or do without it: `cache` none",
                                 journal_name_, io::remedy(errno)));
}

std::string Cache::plan_file(const std::string& key) const {
  io::make_folder(folder_);
  return fmt::format("{}/{}.yaml", folder_, key);
}

}  // namespace hipress::sweep
