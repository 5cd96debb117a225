// A program that a test starts, talks to over pipes, and that ends with the test however it ends.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tocsin::tests {

class ChildProgram {
 public:
  explicit ChildProgram(const std::vector<std::string>& command) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execvp(words[0], words.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~ChildProgram() {
    if (in_ >= 0) close(in_);  // the receivers end with their standard input
    if (!exited_) {
      kill(pid_, SIGTERM);
      waitpid(pid_, nullptr, 0);
    }
    close(out_);
  }
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  [[nodiscard]] int pid() const { return pid_; }

  void say(const std::string& line) const {
    const std::string text = line + "\n";
    if (write(in_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("the program does not listen");
    }
  }

  /// The next line it prints; throws when none comes in time.
  std::string line(std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      if (const auto end = buffer_.find('\n'); end != std::string::npos) {
        std::string out = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return out;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      pollfd watched{out_, POLLIN, 0};
      if (left.count() <= 0 || poll(&watched, 1, static_cast<int>(left.count())) <= 0) {
        throw std::runtime_error("no line from the program within the time");
      }
      char bytes[4096];
      const ssize_t count = read(out_, bytes, sizeof bytes);
      if (count <= 0) throw std::runtime_error("the program has ended");
      buffer_.append(bytes, static_cast<std::size_t>(count));
    }
  }
  /// The next line that begins so.
  std::string line_with(const std::string& beginning) {
    for (;;) {
      std::string text = line();
      if (text.starts_with(beginning)) return text;
    }
  }
  /// The number after PORT=, which the receivers print first.
  int port() { return std::atoi(line_with("PORT=").c_str() + 5); }

  /// How it ended, as waitpid tells; blocks.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    exited_ = true;
    return status;
  }

 private:
  int pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  bool exited_ = false;
  std::string buffer_;
};

}  // namespace tocsin::tests
