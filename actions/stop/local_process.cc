#include "actions/stop/local_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/process_identity.h"

namespace tocsin::actions {

using core::Code;
using core::Error;
using core::Value;

namespace {

// A whole number, also when JSON's reader made a double or a text of it.
std::optional<std::uint64_t> whole(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* number = core::as<std::int64_t>(*value)) {
    return *number < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(*number));
  }
  if (const auto* number = core::as<double>(*value)) {
    const bool exact = *number >= 0 && *number < 9.007199254740992e15 &&
                       *number == static_cast<double>(static_cast<std::uint64_t>(*number));
    return exact ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
  }
  if (const auto* text = core::as<std::string>(*value)) {
    std::uint64_t number = 0;
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, number);
    if (!text->empty() && read.ec == std::errc{} && read.ptr == end) return number;
  }
  return std::nullopt;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string boot_id() {
  const std::string text = read_text("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

std::optional<std::uint64_t> start_time(int pid) {
  const auto stat = core::parse_process_stat(read_text("/proc/" + std::to_string(pid) + "/stat"));
  return stat ? std::optional(stat->start_ticks) : std::nullopt;
}

Error not_there(int pid) {
  return core::not_found("process " + std::to_string(pid) + " has ended");
}

Error other(const std::string& what) { return {Code::failed_precondition, what}; }

}  // namespace

std::optional<ProcessFence> process_fence(const Value& value) {
  const auto pid = whole(core::find(value, "pid"));
  const auto start = whole(core::find(value, "pid_start"));
  // Pids 0 and 1 name groups or the system, never a training process.
  if (!pid || !start || *pid < 2 || *pid > 0x7FFFFFFF) return std::nullopt;
  return ProcessFence{static_cast<int>(*pid), *start, core::text_at(value, "boot_id"),
                      core::text_at(value, "host")};
}

Value fence_value(const ProcessFence& fence) {
  return core::ValueMap{{"pid", fence.pid},
                        {"pid_start", fence.pid_start},
                        {"boot_id", fence.boot_id},
                        {"host", fence.host}};
}

core::Result<ProcessFence> fence_of(int pid, std::string host) {
  const auto start = start_time(pid);
  if (!start) return not_there(pid);
  return ProcessFence{pid, *start, boot_id(), std::move(host)};
}

core::Result<LocalProcess> LocalProcess::open(const ProcessFence& fence,
                                              const std::string& this_host) {
  if (!fence.host.empty() && !this_host.empty() && fence.host != this_host) {
    return other("the process is on " + fence.host + ", this is " + this_host);
  }
  if (!fence.boot_id.empty() && fence.boot_id != boot_id()) {
    return other("this machine was started again since then");
  }
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, fence.pid, 0U));
  if (descriptor < 0) {
    if (errno == ESRCH) return not_there(fence.pid);
    return Error{Code::permission_denied,
                 "pidfd_open of " + std::to_string(fence.pid) + ": " + std::strerror(errno)};
  }
  LocalProcess out(descriptor);
  // Held now: what /proc says belongs to this process, or the process has ended.
  const auto start = start_time(fence.pid);
  if (!start || out.ended()) return not_there(fence.pid);
  if (*start != fence.pid_start) {
    return other("the number " + std::to_string(fence.pid) + " belongs to another process now");
  }
  return out;
}

LocalProcess::LocalProcess(LocalProcess&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

LocalProcess& LocalProcess::operator=(LocalProcess&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

LocalProcess::~LocalProcess() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

core::Status LocalProcess::signal(int number) const {
  if (syscall(SYS_pidfd_send_signal, descriptor_, number, nullptr, 0U) == 0) return core::ok();
  if (errno == ESRCH) return core::not_found("the process has ended");
  return Error{Code::permission_denied, std::string("cannot signal: ") + std::strerror(errno)};
}

bool LocalProcess::ended(std::chrono::milliseconds timeout) const {
  pollfd watched{descriptor_, POLLIN, 0};
  return poll(&watched, 1, static_cast<int>(timeout.count())) == 1 &&
         (watched.revents & POLLIN) != 0;
}

}  // namespace tocsin::actions
