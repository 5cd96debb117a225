#include "insights/store/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace tocsin::insights {

core::Result<std::unique_ptr<StoreLock>> StoreLock::take(const std::string& path) {
  const int file = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return core::unavailable(path + ".lock: cannot be made");
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    ::close(file);
    return core::unavailable(path + ": another process writes it");
  }
  return std::unique_ptr<StoreLock>(new StoreLock(file));
}

StoreLock::~StoreLock() { ::close(file_); }

}  // namespace tocsin::insights
