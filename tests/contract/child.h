// A child process whose output is read line by line, and which can be killed at any instant.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

namespace tocsin::tests {

class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(pipe[1], STDOUT_FILENO);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    ::close(pipe[1]);
    output_ = pipe[0];
  }
  ~Child() {
    kill();
    ::close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Waits for its next line; false: it ended.
  bool line() {
    char byte = 0;
    while (::read(output_, &byte, 1) == 1) {
      if (byte == '\n') return true;
    }
    return false;
  }
  /// Its exit status, or -signal.
  int wait() {
    if (child_ == 0) return status_;
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int kill() {
    if (child_ != 0) ::kill(child_, SIGKILL);
    return wait();
  }
  [[nodiscard]] pid_t pid() const { return child_; }

 private:
  pid_t child_ = 0;
  int status_ = 0;
  int output_ = -1;
};

}  // namespace tocsin::tests
