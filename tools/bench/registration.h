#pragma once

namespace cairn::bench {

// Benchmarks whose registration must wait for main, since it depends on the machine: a file defines
// one of these for its own benchmarks, and main calls RunAll.
class RegisterInMain {
 public:
  using Function = void (*)();
  explicit RegisterInMain(Function function) : function_(function), next_(first_) { first_ = this; }
  RegisterInMain(const RegisterInMain&) = delete;
  RegisterInMain& operator=(const RegisterInMain&) = delete;

  static void RunAll() {
    for (const RegisterInMain* at = first_; at != nullptr; at = at->next_) at->function_();
  }

 private:
  inline static const RegisterInMain* first_ = nullptr;
  Function function_;
  const RegisterInMain* next_;
};

}  // namespace cairn::bench
