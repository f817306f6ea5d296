// Tests that programs are compiled for GPUs at run time. NVRTC needs no GPU; cuda_test.cpp loads
// and runs the compiled programs.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/codec/codec.hpp"
#include "kernels/user/algorithm_cuda.hpp"
#include "tests/kernels/run_time_programs.hpp"

namespace hipress::kernels {

const CudaKernels& hipress_onebit_cuda();
const CudaKernels& hipress_tbq_cuda();
const CudaKernels& hipress_terngrad_cuda();
const CudaKernels& hipress_dgc_cuda();
const CudaKernels& hipress_graddrop_cuda();

namespace {

namespace fs = std::filesystem;
using namespace testing;

/// Uses an empty cache folder of this process while the object exists.
class EmptyCache {
 public:
  EmptyCache() { setenv("HIPRESS_CACHE", folder_.c_str(), 1); }
  ~EmptyCache() {
    fs::remove_all(folder_);
    use_test_cache();
  }
  /// Compiled files, without manifests.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      const std::string kind = entry.path().extension().string();
      if (entry.is_regular_file() && kind != ".manifest") found.push_back(entry.path());
    }
    return found;
  }
  /// The only compiled file; fails the test if there is not exactly one.
  std::string file() const {
    REQUIRE(files().size() == 1);
    return files()[0].string();
  }

 private:
  const std::string folder_ = test_cache() + "/" + std::to_string(getpid());
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const io::RunError& error) {
    return error.what();
  }
  FAIL("no error");
  return "";
}

/// True if the code has the section of a kernel, .text.NAME.
bool holds_kernel(const GpuCode& code, const std::string& name) {
  return code.cubin.find(".text." + name + '\0') != std::string::npos;
}

/// Number of a program's kernels. A quantiser has measuring kernels per pass, type and treatment of
/// the residual; one per pass that concludes it; encode per type; put_back; decode; and settle if
/// residuals may be half computed. A sparsifier has eight for encodes and two for decodes.
std::size_t kernel_count(const CompiledAlgorithm& algorithm) {
  if (algorithm.cuda.kind == CudaKind::kSparsifier) return 10;
  constexpr std::size_t kTypes = kValueTypes;
  const std::size_t deferrable = algorithm.deferrable ? 1 : 0;
  const std::size_t ways = 1 + (algorithm.error_feedback ? 1 : 0) + deferrable;
  const auto passes = static_cast<std::size_t>(algorithm.cuda.pass_count);
  return passes * (kTypes * ways + 1) + kTypes + 2 + deferrable;
}

/// Compiles a program for every generation of GPUs and looks for its kernels.
void check_kernels(const std::string& path) {
  const std::optional<Nvrtc> nvrtc = find_nvrtc();
  if (!nvrtc) return;
  const UserProgram& program = load_program(path);
  for (const int capability : {75, 80, 90, 100}) {
    INFO(path << " for " << capability);
    const GpuCode code = gpu_code(*nvrtc, program, capability);
    CHECK(code.names.size() == kernel_count(*program.algorithm));
    CHECK(std::set<std::string>(code.names.begin(), code.names.end()).size() == code.names.size());
    for (const std::string& name : code.names) CHECK(holds_kernel(code, name));
    CHECK(!holds_kernel(code, "no_such_kernel"));
  }
}

// One test per program, because the first compilation takes a while.
TEST_CASE("onebit compiles for every generation of GPUs, with all its kernels", "[slow]") {
  check_kernels(shipped_program("OnebitEncode.pse"));
}
TEST_CASE("tbq compiles for every generation of GPUs, with all its kernels", "[slow]") {
  check_kernels(shipped_program("TbqEncode.pse"));
}
TEST_CASE("terngrad compiles for every generation of GPUs, with all its kernels", "[slow]") {
  check_kernels(shipped_program("TerngradEncode.pse"));
}
TEST_CASE("dgc compiles for every generation of GPUs, with all its kernels", "[slow]") {
  check_kernels(shipped_program("DgcEncode.pse"));
}
TEST_CASE("graddrop compiles for every generation of GPUs, with all its kernels", "[slow]") {
  check_kernels(shipped_program("GraddropEncode.pse"));
}
TEST_CASE("a user's program compiles for every generation of GPUs, with all its kernels",
          "[slow]") {
  check_kernels(users_program());
}

TEST_CASE("host code says of a program's kernels what nvcc's does") {
  use_test_cache();
  if (!has_compiler()) return;
  const std::pair<std::string, const CudaKernels*> shipped[] = {
      {"Onebit", &hipress_onebit_cuda()},
      {"Tbq", &hipress_tbq_cuda()},
      {"Terngrad", &hipress_terngrad_cuda()},
      {"Dgc", &hipress_dgc_cuda()},
      {"Graddrop", &hipress_graddrop_cuda()}};
  for (const auto& [name, built_in] : shipped) {
    INFO(name);
    const CudaShape& shape = load_program(shipped_program(name + "Encode.pse")).algorithm->cuda;
    const CudaQuantizerKernels& quantizer = built_in->quantizer;
    CHECK(shape.kind == built_in->kind);
    CHECK(shape.pass_count == quantizer.pass_count);
    CHECK(shape.codes_after == quantizer.codes_after);
    CHECK(shape.slice_result_bytes == quantizer.slice_result_bytes);
    std::size_t most = 0;
    for (const CudaPassKernels& pass : quantizer.passes)
      most = std::max(most, pass.tile_result_bytes);
    CHECK(shape.tile_result_bytes == most);
  }
}

TEST_CASE("an architecture is the GPU's, or an older one of its generation") {
  const std::optional<Nvrtc> nvrtc = find_nvrtc();
  if (!nvrtc) return;
  CHECK(nvrtc->architecture_for(80) == 80);
  CHECK(nvrtc->architecture_for(85) == 80);  // no architecture 8.5 exists; code for 8.0 would run
  const std::string message = message_of([&] { nvrtc->architecture_for(20); });
  CHECK(message.find("compute capability 2.0") != std::string::npos);
  CHECK(message.find("CUDA_HOME") != std::string::npos);
}

TEST_CASE("code that NVRTC refuses is an error with the log's start") {
  const std::optional<Nvrtc> nvrtc = find_nvrtc();
  if (!nvrtc) return;
  const std::string message =
      message_of([&] { nvrtc->compile("x.pse", "int f() { return nothing; }", {}, 80); });
  CHECK(message.starts_with("x.pse: NVRTC"));
  CHECK(message.find("identifier \"nothing\" is undefined") != std::string::npos);
  const UserProgram& good = load_program(shipped_program("TbqEncode.pse"));
  const UserProgram broken{good.algorithm, "y.pse", "#error broken\n"};
  const EmptyCache cache;
  CHECK(message_of([&] { gpu_code(*nvrtc, broken, 80); }).find("broken") != std::string::npos);
  CHECK(cache.files().empty());
}

TEST_CASE("what was compiled is used again, unless it is damaged", "[slow]") {
  const std::optional<Nvrtc> nvrtc = find_nvrtc();
  if (!nvrtc) return;
  const UserProgram& program = load_program(shipped_program("OnebitEncode.pse"));
  const EmptyCache cache;
  const GpuCode made = gpu_code(*nvrtc, program, 80);
  const std::string content = io::read_file(cache.file());

  // An unchanged file is read: a new compilation would give different bytes.
  CHECK((gpu_code(*nvrtc, program, 80).cubin == made.cubin));
  // A file with a changed byte, or with a content that was never stored, is not used.
  std::string marked = content;
  marked[marked.size() / 2] ^= 1;
  for (const std::string& damaged : {marked, std::string(),
                                     std::string("\x7f"
                                                 "ELF"),
                                     content.substr(9)}) {
    io::write_file(cache.file(), [&](std::ostream& out) { out << damaged; });
    const GpuCode new_one = gpu_code(*nvrtc, program, 80);
    CHECK(new_one.names == made.names);
    CHECK((new_one.cubin != damaged.substr(0, made.cubin.size())));
    // NVRTC derives internal names from the time: the code is the same, but not its bytes.
    CHECK(new_one.cubin.size() == made.cubin.size());
    CHECK((gpu_code(*nvrtc, program, 80).cubin == new_one.cubin));
  }
}

TEST_CASE("another architecture or program is another file", "[slow]") {
  const std::optional<Nvrtc> nvrtc = find_nvrtc();
  if (!nvrtc) return;
  UserProgram program = load_program(shipped_program("OnebitEncode.pse"));
  const EmptyCache cache;
  gpu_code(*nvrtc, program, 80);
  cache.file();
  gpu_code(*nvrtc, program, 90);
  program.code += "\n";
  gpu_code(*nvrtc, program, 80);
  CHECK(cache.files().size() == 3);
}

TEST_CASE("several may compile the same at a time", "[slow]") {
  const std::optional<Nvrtc> nvrtc = find_nvrtc();
  if (!nvrtc) return;
  const UserProgram& program = load_program(shipped_program("TbqEncode.pse"));
  const EmptyCache cache;
  std::vector<GpuCode> made(4);
  {
    std::vector<std::jthread> threads;
    for (GpuCode& code : made) {
      threads.emplace_back([&] { code = gpu_code(*nvrtc, program, 80); });
    }
  }
  for (const GpuCode& code : made) {
    CHECK(code.names == made[0].names);
    for (const std::string& name : code.names) CHECK(holds_kernel(code, name));
  }
  cache.file();  // there is one file, and no temporary ones
  const GpuCode kept = gpu_code(*nvrtc, program, 80);
  const auto is_kept = [&](const GpuCode& code) { return code.cubin == kept.cubin; };
  CHECK(std::any_of(made.begin(), made.end(), is_kept));
}

TEST_CASE("a machine without NVRTC is told what to install") {
  const std::string message = message_of([] { Nvrtc({"libno-such-nvrtc.so"}); });
  CHECK(message.find("libno-such-nvrtc.so") != std::string::npos);
  CHECK(message.find("CUDA_HOME") != std::string::npos);
  setenv("CUDA_HOME", "/opt/my-cuda", 1);
  CHECK(nvrtc_libraries()[0].starts_with("/opt/my-cuda/lib64/libnvrtc.so"));
  unsetenv("CUDA_HOME");
}

TEST_CASE("more passes than a GPU takes are refused by name") {
  const std::optional<Nvrtc> nvrtc = find_nvrtc();
  if (!nvrtc) return;
  CompiledAlgorithm algorithm = *load_program(shipped_program("TbqEncode.pse")).algorithm;
  algorithm.cuda.pass_count = kMaxCudaPasses + 1;
  const UserProgram program{&algorithm, "z.pse", ""};
  const std::string message = message_of([&] { gpu_code(*nvrtc, program, 80); });
  CHECK(message.starts_with("z.pse: it measures a slice in 9 passes"));
}

TEST_CASE("a program for a GPU where there is none is an error") {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return;
  use_test_cache();
  if (!has_compiler()) return;
  const std::string message = message_of([] { make_codec(users_program(), Device::kCuda); });
  CHECK(message.find("there is no GPU") != std::string::npos);
  CHECK(message.find("use the CPU") != std::string::npos);
}

}  // namespace
}  // namespace hipress::kernels
