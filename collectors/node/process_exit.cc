#include "collectors/node/process_exit.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

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
  const auto stat = read_process_stat(process.pid);
  if (!stat || static_cast<std::int64_t>(stat->start_ticks) != process.pid_start) {
    return std::nullopt;
  }
  return stat->wait_status;
}

}  // namespace

std::optional<core::ProcessStat> read_process_stat(std::int64_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return core::parse_process_stat(text);
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
