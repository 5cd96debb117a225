#include "core/signals_blocked.h"

#include <gtest/gtest.h>

#include <thread>

namespace tocsin::core {
namespace {

bool blocks(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(SignalsBlocked, ThreadsInheritItAndTheMaskComesBack) {
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &usr1, &before);
  ASSERT_FALSE(blocks(SIGTERM));
  bool inherited = false;
  {
    const SignalsBlocked blocked;
    EXPECT_TRUE(blocks(SIGTERM));
    std::thread([&] { inherited = blocks(SIGTERM) && blocks(SIGINT); }).join();
  }
  EXPECT_TRUE(inherited);
  EXPECT_FALSE(blocks(SIGTERM));
  EXPECT_TRUE(blocks(SIGUSR1));  // what was blocked before stays blocked
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace tocsin::core
