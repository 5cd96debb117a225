#include "app/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tocsin::app {
namespace {

constexpr std::size_t kMostMessage = std::size_t{64} << 20;
constexpr std::size_t kTailLines = 12;
constexpr std::size_t kLongestLine = 2000;
constexpr int kItsEnd = 3;

std::string error_text(std::string_view what, int error) {
  return std::string(what) + ": " + std::strerror(error);
}

std::array<char, 4> length_of(std::size_t size) {
  std::array<char, 4> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<char>(static_cast<unsigned char>(size >> (8 * i)));
  }
  return out;
}

// Between fork and exec: only what a signal handler may do.
[[noreturn]] void become(char* const* command, char* const* environment, int socket, int output,
                         std::uint64_t memory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  // dup2 of a descriptor onto itself would leave it closed on exec.
  const int high = fcntl(socket, F_DUPFD_CLOEXEC, 10);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  dup2(high, kItsEnd);
  if (memory > 0) {
    const rlimit limit{memory, memory};
    setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  execvpe(command[0], command, environment);
  const char* why = std::strerror(errno);
  (void)!write(STDERR_FILENO, command[0], std::strlen(command[0]));
  (void)!write(STDERR_FILENO, ": ", 2);
  (void)!write(STDERR_FILENO, why, std::strlen(why));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(127);
}

// Ours; numeric libraries get one thread each, as their pools would eat the address space.
std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) out.emplace_back(*one);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (std::getenv(name) == nullptr) out.push_back(std::string(name) + "=1");
  }
  out.emplace_back("PYTHONUNBUFFERED=1");
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

ChildProcess::ChildProcess(ChildOptions options, pid_t pid, int socket, int output)
    : options_(std::move(options)), pid_(pid), socket_(socket), output_(output) {}

core::Result<std::unique_ptr<ChildProcess>> ChildProcess::start(ChildOptions options) {
  std::array<int, 2> sockets{};
  std::array<int, 2> output{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return core::unavailable(error_text("no socket pair", errno));
  }
  if (pipe2(output.data(), O_CLOEXEC) != 0) {
    const int why = errno;
    close(sockets[0]);
    close(sockets[1]);
    return core::unavailable(error_text("no pipe", why));
  }
  std::vector<std::string> variables = environment();
  const std::vector<char*> command = pointers(options.command);
  const std::vector<char*> given = pointers(variables);
  const pid_t pid = fork();
  if (pid == 0) become(command.data(), given.data(), sockets[1], output[1], options.memory);
  const int why = errno;
  close(sockets[1]);
  close(output[1]);
  if (pid < 0) {
    close(sockets[0]);
    close(output[0]);
    return core::unavailable(error_text("no process", why));
  }
  fcntl(sockets[0], F_SETFL, O_NONBLOCK);
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(std::move(options), pid, sockets[0], output[0]));
}

ChildProcess::~ChildProcess() {
  close(socket_);
  close(output_);
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);  // its session
  kill(pid_, SIGKILL);   // before it has made one
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::take_line(std::string line) {
  if (line.size() > kLongestLine) line.resize(kLongestLine);
  if (options_.print) options_.print(line);
  tail_.push_back(std::move(line));
  if (tail_.size() > kTailLines) tail_.erase(tail_.begin());
}

void ChildProcess::read_output() {
  std::array<char, 4096> bytes{};
  // So much at once; the rest waits in the pipe, which stops who prints without end.
  for (int i = 0; i < 16; ++i) {
    const ssize_t got = ::read(output_, bytes.data(), bytes.size());
    if (got <= 0) return;
    partial_.append(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t end = partial_.find('\n'); end != std::string::npos;
         end = partial_.find('\n')) {
      take_line(partial_.substr(0, end));
      partial_.erase(0, end + 1);
    }
    if (partial_.size() > kLongestLine) take_line(std::exchange(partial_, {}));
  }
}

std::string ChildProcess::tail() const {
  std::string out;
  for (const std::string& line : tail_) out += (out.empty() ? "" : "\n") + line;
  return out;
}

core::Error ChildProcess::ended() {
  read_output();
  if (!partial_.empty()) take_line(std::exchange(partial_, {}));
  int status = 0;
  pid_t got = 0;
  // It has closed its end, so it is about to be gone, or closed it on purpose: then it is ended.
  for (int i = 0; i < 100 && got == 0; ++i) {
    got = waitpid(pid_, &status, WNOHANG);
    if (got == 0) poll(nullptr, 0, 10);
  }
  if (got == 0) return core::unavailable("its process closed the connection");
  kill(-pid_, SIGKILL);  // what it started and left behind
  pid_ = 0;
  if (WIFSIGNALED(status)) {
    return core::unavailable("its process was ended by signal " + std::to_string(WTERMSIG(status)));
  }
  return core::unavailable("its process ended with exit code " +
                           std::to_string(WEXITSTATUS(status)));
}

core::Status ChildProcess::wait(short wanted, const core::Clock& clock, core::Duration deadline,
                                bool& ready) {
  const core::Duration left = deadline - clock.monotonic();
  if (left <= core::Duration::zero()) {
    read_output();
    return core::Error{core::Code::deadline_exceeded, "it gave no answer in time"};
  }
  std::array<pollfd, 2> files{{{socket_, wanted, 0}, {output_, POLLIN, 0}}};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
  // The end of its output says nothing: it may have closed it and work on.
  const nfds_t count = output_open_ ? 2 : 1;
  poll(files.data(), count, static_cast<int>(std::min<std::int64_t>(milliseconds, 1000)));
  if (count == 2 && (files[1].revents & POLLIN) != 0) read_output();
  if (count == 2 && (files[1].revents & (POLLHUP | POLLIN)) == POLLHUP) output_open_ = false;
  ready = files[0].revents != 0;
  return core::ok();
}

core::Result<std::string> ChildProcess::exchange(std::string_view request, const core::Clock& clock,
                                                 core::Duration deadline) {
  if (request.size() > kMostMessage) {
    return core::Error{core::Code::resource_exhausted,
                       "a step of " + std::to_string(request.size()) +
                           " bytes is too large: " + "select fewer tensors"};
  }
  const std::array<char, 4> length = length_of(request.size());
  std::string out(length.data(), length.size());
  out += request;
  std::string in;
  std::size_t wanted = length.size();
  std::array<char, 65536> bytes{};
  for (std::size_t sent = 0; in.size() < wanted;) {
    bool ready = false;
    const bool sending = sent < out.size();
    if (auto waited = wait(sending ? POLLOUT : POLLIN, clock, deadline, ready); !waited) {
      return waited.error();
    }
    if (!ready) continue;
    if (sending) {
      const ssize_t went = send(socket_, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (went < 0 && errno != EAGAIN && errno != EINTR) return ended();
      if (went > 0) sent += static_cast<std::size_t>(went);
      continue;
    }
    const ssize_t got = recv(socket_, bytes.data(), std::min(bytes.size(), wanted - in.size()), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return ended();
    if (got > 0) in.append(bytes.data(), static_cast<std::size_t>(got));
    if (wanted == length.size() && in.size() == wanted) {
      for (std::size_t i = 0; i < length.size(); ++i) {
        wanted += static_cast<std::size_t>(static_cast<unsigned char>(in[i])) << (8 * i);
      }
      if (wanted > kMostMessage) {
        return core::Error{core::Code::data_loss, "its answer is longer than 64 MiB"};
      }
    }
  }
  read_output();
  return in.substr(length.size());
}

}  // namespace tocsin::app
