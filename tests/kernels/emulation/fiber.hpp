#pragma once

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define EMULATION_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_ASAN
#endif
#endif
#ifdef EMULATION_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// A longjmp between stacks costs no system call, but checked builds refuse it.
#if !defined(EMULATION_ASAN) && !defined(_FORTIFY_SOURCE)
#define EMULATION_JUMPS
#endif

namespace hipress::kernels::emulation {

/// A function with its own stack. It runs until it suspends itself, and continues there when it is
/// resumed. After the function has returned, the next resume() calls it again.
class Fiber {
 public:
  using Body = void (*)(void* argument);

  Fiber() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    memory_ = mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    mapped_ = kStackBytes + page;
    mprotect(memory_, page, PROT_NONE);  // an overflow must not run into the next stack
    stack_ = static_cast<std::byte*>(memory_) + page;
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() { munmap(memory_, mapped_); }

  /// Makes the next resume() call `body(argument)` from its start, wherever the fiber was.
  void begin(Body body, void* argument) {
    body_ = body;
    argument_ = argument;
    if (started_ && returned_) return;
    started_ = false;
  }

  void resume() {
    returned_ = false;
    running_ = this;
#ifdef EMULATION_JUMPS
    if (_setjmp(caller_) != 0) return;
    if (started_) _longjmp(own_, 1);
    prepare();
    setcontext(&context_);
#else
    if (!started_) prepare();
    switch_stacks(caller_context_, context_, stack_, kStackBytes);
#endif
  }

  /// Returns to the caller of resume().
  void suspend() {
#ifdef EMULATION_JUMPS
    if (_setjmp(own_) == 0) _longjmp(caller_, 1);
#else
    switch_stacks(context_, caller_context_, caller_stack_, caller_stack_bytes_);
#endif
  }

  bool returned() const { return returned_; }

 private:
  static constexpr std::size_t kStackBytes = 256 << 10;

  void prepare() {
    started_ = true;
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_;
    context_.uc_stack.ss_size = kStackBytes;
    context_.uc_link = nullptr;
#ifdef EMULATION_ASAN
    __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
    makecontext(&context_, &Fiber::main, 0);
  }

  static void main() {
    Fiber& self = *running_;
    self.arrived();
    for (;;) {
      self.body_(self.argument_);
      self.returned_ = true;
      self.suspend();
    }
  }

#ifdef EMULATION_JUMPS
  void arrived() {}
  jmp_buf own_, caller_;
#else
  void switch_stacks(ucontext_t& from, ucontext_t& to, [[maybe_unused]] const void* stack,
                     [[maybe_unused]] std::size_t bytes) {
#ifdef EMULATION_ASAN
    void* fake_stack = nullptr;
    const bool suspends = &from == &context_;
    __sanitizer_start_switch_fiber(&fake_stack, stack, bytes);
    swapcontext(&from, &to);
    __sanitizer_finish_switch_fiber(fake_stack, suspends ? &caller_stack_ : nullptr,
                                    suspends ? &caller_stack_bytes_ : nullptr);
#else
    swapcontext(&from, &to);
#endif
  }
  /// Tells the address sanitizer on which stack resume() was called.
  void arrived() {
#ifdef EMULATION_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_bytes_);
#endif
  }
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  ucontext_t caller_context_;
#endif

  static inline Fiber* running_ = nullptr;

  void* memory_;
  std::size_t mapped_;
  std::byte* stack_;
  ucontext_t context_;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  bool started_ = false, returned_ = false;
};

}  // namespace hipress::kernels::emulation
