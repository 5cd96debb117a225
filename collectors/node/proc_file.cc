#include "collectors/node/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace tocsin::collectors {
namespace {

constexpr std::size_t kFirstBuffer = 4096;
constexpr std::size_t kLargest = std::size_t{16} << 20;  // no such file is this long

}  // namespace

ProcFile::ProcFile(ProcFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      buffer_(std::move(other.buffer_)) {}

ProcFile& ProcFile::operator=(ProcFile&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    buffer_ = std::move(other.buffer_);
  }
  return *this;
}

ProcFile::~ProcFile() { close(); }

void ProcFile::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

core::Error ProcFile::fail(int error_number) {
  close();
  const bool gone = error_number == ENOENT || error_number == ESRCH || error_number == ENODEV ||
                    error_number == ENOTDIR;
  const bool refused = error_number == EACCES || error_number == EPERM;
  return {gone      ? core::Code::not_found
          : refused ? core::Code::permission_denied
                    : core::Code::unavailable,
          path_ + ": " + std::generic_category().message(error_number)};
}

core::Result<std::string_view> ProcFile::read() {
  if (descriptor_ < 0) {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) return fail(errno);
  }
  if (buffer_.empty()) buffer_.resize(kFirstBuffer);
  std::size_t used = 0;
  for (;;) {
    const ssize_t got = ::pread(descriptor_, buffer_.data() + used, buffer_.size() - used,
                                static_cast<off_t>(used));
    if (got < 0) {
      if (errno == EINTR) continue;
      return fail(errno);
    }
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used == buffer_.size()) {
      if (used >= kLargest) return fail(EFBIG);
      buffer_.resize(2 * used);
    }
  }
  return std::string_view(buffer_.data(), used);
}

}  // namespace tocsin::collectors
