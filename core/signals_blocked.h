// Keeps the signals of a program away from threads of ours.
#pragma once

#include <signal.h>

namespace tocsin::core {

/// While it lives, the calling thread takes no signal, and threads that it starts inherit that: the
/// program's own threads handle its signals. Lives and ends on one thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace tocsin::core
