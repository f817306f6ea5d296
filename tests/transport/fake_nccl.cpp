// A libnccl.so.2 for tests, which moves no data and logs the calls.

#include <nccl.h>

#include <cstdio>
#include <string>

namespace {

std::string log_text;

ncclResult_t log_call(const char* name, const void* from, const void* to, std::size_t count,
                      int type, int peer) {
  char line[128];
  std::snprintf(line, sizeof line, "%s %zx %zx %zu %d %d\n", name,
                reinterpret_cast<std::size_t>(from), reinterpret_cast<std::size_t>(to), count, type,
                peer);
  log_text += line;
  return ncclSuccess;
}

}  // namespace

extern "C" {

/// Returns the calls since it was last called, one per line: name, from, to, count, type and peer.
const char* fake_nccl_log() {
  static std::string taken;
  taken.swap(log_text);
  log_text.clear();
  return taken.c_str();
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t, cudaStream_t) {
  return log_call("AllGather", from, to, count, type, -1);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return log_call("AllReduce", from, to, count, type, -1);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return log_call("ReduceScatter", from, to, count, type, -1);
}
#ifdef FAKE_NCCL_HAS_ALL_TO_ALL
ncclResult_t ncclAlltoAll(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t,
                          cudaStream_t) {
  return log_call("AlltoAll", from, to, count, type, -1);
}
#endif
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t,
                      cudaStream_t) {
  return log_call("Send", from, nullptr, count, type, peer);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t,
                      cudaStream_t) {
  return log_call("Recv", nullptr, to, count, type, peer);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int, ncclUniqueId, int, ncclConfig_t*) {
  static int somewhere;
  *comm = reinterpret_cast<ncclComm_t>(&somewhere);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId*) { return ncclSuccess; }
ncclResult_t ncclGetVersion(int* version) {
  *version = 22005;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }

}  // extern "C"
