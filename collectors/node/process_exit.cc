#include "collectors/node/process_exit.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#ifndef P_PIDFD
#define P_PIDFD 3  // since Linux 5.4; older headers lack the name
#endif

namespace tocsin::collectors {
namespace {

// PIDFD_GET_INFO of <linux/pidfd.h> as of Linux 6.15, which older headers lack.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1U << 3U;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

constexpr int kStartField = 22;
constexpr int kExitField = 52;

std::optional<int> of_child(int descriptor) {
  siginfo_t info{};
  if (waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(descriptor), &info,
             WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  return info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status;
}

// Known once somebody has waited for it.
std::optional<int> of_reaped(int descriptor) {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (ioctl(descriptor, kGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

// Nobody has waited for it yet. The kernel writes 0 for those who may not know.
std::optional<int> of_zombie(const EndedProcess& process) {
  struct stat owner {};
  const std::string place = "/proc/" + std::to_string(process.pid);
  if (stat(place.c_str(), &owner) != 0) return std::nullopt;
  if (geteuid() != 0 && geteuid() != owner.st_uid) return std::nullopt;
  const auto status = stat_field(process.pid, kExitField);
  if (!status || stat_field(process.pid, kStartField) != process.pid_start) return std::nullopt;
  return static_cast<int>(*status);
}

}  // namespace

// The second field may hold blanks and parentheses, so the others are counted from its end.
std::optional<std::int64_t> stat_field(std::int64_t pid, int number) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::string_view left = std::string_view(stat).substr(name_end + 1);
  for (int field = 3;; ++field) {
    const std::size_t begin = left.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return std::nullopt;
    left.remove_prefix(begin);
    const std::size_t end = std::min(left.find(' '), left.size());
    if (field == number) {
      std::int64_t value = 0;
      std::from_chars(left.data(), left.data() + end, value);
      return value;
    }
    left.remove_prefix(end);
  }
}

std::optional<int> wait_status(const EndedProcess& process) {
  if (process.descriptor < 0) return std::nullopt;
  if (const auto status = of_child(process.descriptor)) return status;
  auto status = of_reaped(process.descriptor);
  if (!status) status = of_zombie(process);
  if (!status) status = of_reaped(process.descriptor);  // waited for in between
  return status && WIFEXITED(*status) ? status : std::nullopt;
}

}  // namespace tocsin::collectors
