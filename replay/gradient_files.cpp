#include "replay/gradient_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include "io/descriptors.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/codec/state_store.hpp"

namespace hipress::replay {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little,
              "files hold values as they lie in memory");

constexpr std::int64_t kValueBytes = sizeof(float);

std::string rank_folder(const std::string& folder, std::uint32_t rank) {
  return (fs::path(folder) / fmt::format("rank{}", rank)).string();
}

void require_whole(const std::string& path, const models::Gradient& gradient) {
  struct stat status {};
  const std::int64_t wanted = kValueBytes * gradient.elements;
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    io::refuse_file(
        path,
        fmt::format("read (give {} bytes: gradient {} as fp32)", wanted, io::quote(gradient.name)),
        error);
  }
  if (!S_ISREG(status.st_mode)) throw io::InputError(path, 0, "is not a regular file; give one");
  if (status.st_size == wanted) return;
  throw io::InputError(
      path, 0,
      fmt::format("has {} bytes; give {}: gradient {} has {} elements of fp32", status.st_size,
                  wanted, io::quote(gradient.name), gradient.elements));
}

void require_folder(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    io::refuse_file(path, "read (give a folder with rank0/0.f32, rank0/1.f32 …)", error);
  }
  if (!S_ISDIR(status.st_mode)) throw io::InputError(path, 0, "is no folder; give one");
}

/// Throws io::InputError if there is a file anywhere in the folder. Subfolders are allowed: other
/// ranks may be making theirs.
void require_no_files(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_directory()) continue;
    throw io::InputError(folder, 0,
                         fmt::format("holds {} already; give a new or an empty folder, so that it "
                                     "holds files of one run only",
                                     entry->path().lexically_relative(folder).string()));
  }
  if (error) io::refuse_file(folder, "read", error.value());
}

}  // namespace

std::string gradient_file(const std::string& folder, std::uint32_t rank, std::uint32_t gradient) {
  return (fs::path(rank_folder(folder, rank)) / fmt::format("{}.f32", gradient)).string();
}

GradientFiles::GradientFiles(std::string folder, const models::Model& model, std::uint32_t ranks)
    : folder_(std::move(folder)) {
  require_folder(folder_);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t g = 0; g < model.gradients.size(); ++g) {
      require_whole(gradient_file(folder_, rank, g), model.gradients[g]);
    }
  }
}

void GradientFiles::read(std::uint32_t rank, std::uint32_t gradient, std::int64_t first_element,
                         std::span<float> values) const {
  const std::string path = gradient_file(folder_, rank, gradient);
  const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto fail = [&](const std::string& why) {
    throw io::RunError(fmt::format("{}: cannot be read: {}", path, why));
  };
  if (!file) fail(std::generic_category().message(errno));
  auto left = std::as_writable_bytes(values);
  auto at = static_cast<off_t>(kValueBytes * first_element);
  while (!left.empty()) {
    const ssize_t got = ::pread(file.number(), left.data(), left.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(std::generic_category().message(errno));
    if (got == 0) fail("it has become shorter during the run");
    left = left.subspan(static_cast<std::size_t>(got));
    at += got;
  }
}

void prepare_means(const std::string& folder, std::uint32_t first_rank, std::uint32_t ranks) {
  require_no_files(folder);
  for (std::uint32_t rank = first_rank; rank < first_rank + ranks; ++rank) {
    // Do not try to write a file: another rank's require_no_files() would find it.
    io::make_folder(rank_folder(folder, rank));
  }
}

void write_means(const std::string& folder, std::uint32_t rank, const models::Model& model,
                 const casync::Layout& layout, std::span<const std::span<float>> units) {
  for (std::uint32_t u = 0; u < units.size(); ++u) {
    for (const casync::Member& member : casync::places(layout.units[u], model)) {
      const auto bytes = std::as_bytes(units[u].subspan(static_cast<std::size_t>(member.first),
                                                        static_cast<std::size_t>(member.elements)));
      io::write_file(gradient_file(folder, rank, member.gradient), [&](std::ostream& out) {
        out.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
      });
    }
  }
}

std::string state_file(const std::string& folder, std::uint32_t rank) {
  return (fs::path(folder) / fmt::format("rank{}.state", rank)).string();
}

void prepare_states(const std::string& folder) { io::make_folder(folder); }

void require_states(const std::string& folder, std::uint32_t ranks) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    kernels::StateStore().load(state_file(folder, rank));
  }
}

}  // namespace hipress::replay
