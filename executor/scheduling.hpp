#pragma once

namespace hipress::executor {

/// While it lives, a thread of real-time priority leaves its core to any other of its process that
/// wakes up. For tasks that compute for long where cores are few: those who move bytes need a core
/// for little, but at once. Ordinary threads, which take turns anyway, are left as they are.
class GiveWay {
 public:
  explicit GiveWay(bool wanted) noexcept;
  ~GiveWay();
  GiveWay(const GiveWay&) = delete;
  GiveWay& operator=(const GiveWay&) = delete;

 private:
  bool lowered_ = false;
};

}  // namespace hipress::executor
