#include "ingest/journal/directory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/identity.h"

namespace tocsin::ingest {
namespace {

namespace fs = std::filesystem;

constexpr int kLockTurns = 3;
constexpr int kLockPause = 5;  // ms

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// Magic numbers of statfs(2): file systems whose locks and writes other machines can race with.
bool is_network(const std::string& directory) {
  constexpr std::array<std::uint32_t, 10> kNetwork = {
      0x6969,      // NFS
      0xFF534D42,  // CIFS
      0xFE534D42,  // SMB2
      0x517B,      // SMB
      0x5346414F,  // AFS
      0x73757245,  // Coda
      0x00C36400,  // Ceph
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
  };
  struct statfs info {};
  if (::statfs(directory.c_str(), &info) != 0) return false;
  const auto magic = static_cast<std::uint32_t>(info.f_type);
  return std::find(kNetwork.begin(), kNetwork.end(), magic) != kNetwork.end();
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() noexcept { return std::exchange(fd_, -1); }

void FileDescriptor::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

core::Error file_error(std::string_view doing, const std::string& path, int error_number) {
  auto code = core::Code::unavailable;
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EMFILE) {
    code = core::Code::resource_exhausted;
  } else if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    code = core::Code::permission_denied;
  }
  return {code,
          std::string(doing) + " " + path + ": " + std::generic_category().message(error_number)};
}

std::string machine_hash() {
  for (const char* path : {"/etc/machine-id", "/var/lib/dbus/machine-id"}) {
    const std::string id = read_text(path);
    // Images are shipped with this placeholder; it names no machine.
    if (id.empty() || id == "uninitialized") continue;
    return core::hex(core::sha256("tocsin journal " + id)).substr(0, 32);
  }
  return {};
}

core::Error refused_journal(const std::string& directory, std::string_view why) {
  return {core::Code::failed_precondition,
          "journal " + directory + " " + std::string(why) +
              "; a journal belongs to one machine: use transport.kafka for several"};
}

core::Status prepare_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return file_error("making", directory, error.value());
  if (is_network(directory)) return refused_journal(directory, "lies on a network file system");
  if (fs::exists(directory + "/journal.json", error)) {
    return core::Error{core::Code::failed_precondition,
                       "journal " + directory +
                           " has the segment files (format 1) of an earlier version, which this "
                           "one does not read; name another folder, or move it away"};
  }
  return core::ok();
}

core::Result<std::shared_ptr<GroupLock>> GroupLock::take(const std::string& directory,
                                                         std::string_view group) {
  std::string name(group);
  std::replace(name.begin(), name.end(), '/', '_');
  const std::string path = directory + "/" + name + ".lock";
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.open()) return file_error("opening", path, errno);
  // Who only looks whether somebody reads holds it for a moment.
  int locked = -1;
  for (int turn = 0; turn < kLockTurns && locked != 0; ++turn) {
    if (turn > 0) (void)::poll(nullptr, 0, kLockPause);
    locked = ::flock(file.get(), LOCK_EX | LOCK_NB);
    if (locked != 0 && errno != EWOULDBLOCK) break;
  }
  if (locked != 0) {
    if (errno != EWOULDBLOCK) return file_error("locking", path, errno);
    const std::string holder = read_text(path);
    return core::Error{core::Code::failed_precondition,
                       "group " + std::string(group) + " of journal " + directory +
                           " is read by process " + (holder.empty() ? "(unknown)" : holder) + " (" +
                           path + "); only one may"};
  }
  // The process id is for people; a failure to note it harms nobody.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file.get(), 0) == 0) {
    [[maybe_unused]] const auto written = ::pwrite(file.get(), pid.data(), pid.size(), 0);
  }
  return std::shared_ptr<GroupLock>(new GroupLock(std::move(file)));
}

void GroupLock::release() noexcept {
  held_.store(false);
  file_.reset();
}

}  // namespace tocsin::ingest
