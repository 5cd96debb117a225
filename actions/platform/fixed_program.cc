#include "actions/platform/fixed_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tocsin::actions {
namespace {

using core::Code;
using core::Error;
using std::chrono::milliseconds;

constexpr std::size_t kMostOutput = 64UL * 1024;
constexpr int kFirstOther = 3;  // descriptors behind stdin, stdout, stderr

/// Why it is not run; ok: it may be.
core::Status may_run(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return Error{Code::permission_denied, path + " is no absolute path"};
  }
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    return Error{errno == ENOENT || errno == ENOTDIR ? Code::not_found : Code::permission_denied,
                 path + ": " + std::strerror(errno)};
  }
  if (!S_ISREG(found.st_mode)) return Error{Code::permission_denied, path + " is no file"};
  if ((found.st_mode & S_IWOTH) != 0) {
    return Error{Code::permission_denied, path + " may be written by everybody, so it is not run"};
  }
  if (access(path.c_str(), X_OK) != 0) {
    return Error{Code::permission_denied, path + " may not be executed by this process"};
  }
  return core::ok();
}

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    close_write();
    close_read();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] bool open() const { return ends_[0] >= 0; }
  [[nodiscard]] int read_end() const { return ends_[0]; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void close_read() { close_one(0); }
  void close_write() { close_one(1); }

 private:
  void close_one(std::size_t which) {
    if (ends_[which] >= 0) close(ends_[which]);
    ends_[which] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

/// The attributes of a child: a group of its own, no signal blocked or ignored, three descriptors.
class Spawning {
 public:
  Spawning(const Pipe& out, const Pipe& err) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, out.write_end(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files_, err.write_end(), STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files_, kFirstOther);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawning() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;

  /// 0, or an errno.
  int start(const ProgramCall& call, pid_t& child) {
    std::vector<std::string> words = call.arguments;
    std::vector<std::string> variables;
    variables.reserve(call.environment.size());
    for (const auto& [name, value] : call.environment) variables.push_back(name + "=" + value);
    std::vector<char*> argv = pointers(words);
    std::vector<char*> envp = pointers(variables);
    return posix_spawn(&child, argv.front(), &files_, &attributes_, argv.data(), envp.data());
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    out.reserve(words.size() + 1);
    for (std::string& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
  }
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

/// Reads what is there, keeps what fits. False: the other end is closed.
bool read_some(int from, std::string& into) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(from, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  const std::size_t room = kMostOutput - std::min(kMostOutput, into.size());
  into.append(buffer.data(), std::min(room, static_cast<std::size_t>(count)));
  return count > 0;
}

class LocalProgram final : public FixedProgram {
 public:
  explicit LocalProgram(core::Clock& clock) : clock_(clock) {}

  core::Result<ProgramResult> run(const ProgramCall& call, milliseconds budget) override {
    if (call.arguments.empty()) return Error{Code::invalid_argument, "no program is named"};
    const std::string& path = call.arguments.front();
    if (auto may = may_run(path); !may) return may.error();
    Pipe out;
    Pipe err;
    if (!out.open() || !err.open()) {
      return Error{Code::internal, path + ": no pipe: " + std::strerror(errno)};
    }
    pid_t child = -1;
    if (const int failed = Spawning(out, err).start(call, child); failed != 0) {
      return Error{Code::internal, path + ": " + std::strerror(failed)};
    }
    out.close_write();
    err.close_write();
    ProgramResult result;
    const core::Duration until = clock_.monotonic() + budget;
    const bool in_time = drain(out, err, result, until) && ends_by(child, until);
    // Its group: what it has started holds the pipes, too.
    if (!in_time) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) {
      return Error{Code::deadline_exceeded,
                   path + " took longer than " + std::to_string(budget.count()) + " ms"};
    }
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
  }

 private:
  /// Until both are closed. False: the time is over.
  bool drain(Pipe& out, Pipe& err, ProgramResult& result, core::Duration until) {
    while (out.read_end() >= 0 || err.read_end() >= 0) {
      const auto left = std::chrono::duration_cast<milliseconds>(until - clock_.monotonic());
      if (left.count() <= 0) return false;
      std::array<pollfd, 2> ends{pollfd{out.read_end(), POLLIN, 0},
                                 pollfd{err.read_end(), POLLIN, 0}};
      const int wait = static_cast<int>(std::min<std::int64_t>(left.count(), 1000));
      if (poll(ends.data(), ends.size(), wait) < 0 && errno != EINTR) return false;
      if (ends[0].revents != 0 && !read_some(out.read_end(), result.output)) out.close_read();
      if (ends[1].revents != 0 && !read_some(err.read_end(), result.errors)) err.close_read();
    }
    return true;
  }

  /// A program may close what it writes to and go on.
  [[nodiscard]] bool ends_by(pid_t child, core::Duration until) const {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
    if (fd < 0) return false;
    bool ended = false;
    while (!ended) {
      const auto left = std::chrono::duration_cast<milliseconds>(until - clock_.monotonic());
      if (left.count() <= 0) break;
      pollfd one{fd, POLLIN, 0};
      ended = poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000))) > 0;
    }
    close(fd);
    return ended;
  }

  core::Clock& clock_;
};

}  // namespace

std::unique_ptr<FixedProgram> local_program(core::Clock& clock) {
  return std::make_unique<LocalProgram>(clock);
}

}  // namespace tocsin::actions
