// A child process that answers requests over a socket pair, and what it prints.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/result.h"

namespace tocsin::app {

struct ChildOptions {
  std::vector<std::string> command;                  // looked for in $PATH
  std::uint64_t memory = 0;                          // most address space, bytes; 0: no limit
  std::function<void(std::string_view line)> print;  // each line that it prints
};

/// Descriptor 3 of the child is its end of the socket pair. It has a session of its own, no input,
/// and dies with the thread that started it.
class ChildProcess {
 public:
  static core::Result<std::unique_ptr<ChildProcess>> start(ChildOptions options);
  /// Ends it, and all that it has started in its session.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// One message out, one back; each is a length (u32, little-endian) and so many bytes.
  /// deadline_exceeded: no answer until `deadline` (monotonic); unavailable: it has ended, with how.
  /// After an error it is of no use any more.
  core::Result<std::string> exchange(std::string_view request, const core::Clock& clock,
                                     core::Duration deadline);
  /// What it printed last.
  [[nodiscard]] std::string tail() const;
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  ChildProcess(ChildOptions options, pid_t pid, int socket, int output);
  core::Status wait(short wanted, const core::Clock& clock, core::Duration deadline, bool& ready);
  void read_output();
  void take_line(std::string line);
  [[nodiscard]] core::Error ended();

  ChildOptions options_;
  pid_t pid_;
  int socket_;
  int output_;
  bool output_open_ = true;
  std::string partial_;            // a line without its end
  std::vector<std::string> tail_;  // newest last
};

}  // namespace tocsin::app
