#include "ingest/journal/guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

namespace tocsin::ingest {
namespace {

// Places that SQLite locks: https://sqlite.org/fileformat.html#the_lock_byte_page, and os_unix.c for the index.
constexpr ::off_t kSharedFirst = 0x40000002;
constexpr ::off_t kSharedSize = 510;
constexpr ::off_t kIndexInUse = 128;

FileGuard::File named(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
}

/// What cannot be locked so (a file system without it) stays as safe as it was.
void lock(const FileDescriptor& file, short type, ::off_t first, ::off_t size) {
  if (file.get() < 0) return;
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = size;
  (void)::fcntl(file.get(), F_OFD_SETLK, &range);
}

}  // namespace

FileGuard::File FileGuard::hold(const std::string& path) {
  const core::MutexLock guard(mutex_);
  const File file = named(path);
  if (file == File{0, 0}) return file;
  Held& held = held_[file];
  if (held.users++ > 0) return file;
  held.file = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  lock(held.file, F_RDLCK, kSharedFirst, kSharedSize);
  return file;
}

void FileGuard::hold_index(File file, const std::string& path) {
  const core::MutexLock guard(mutex_);
  const auto found = held_.find(file);
  if (found == held_.end() || found->second.index.get() >= 0) return;
  found->second.index = FileDescriptor(::open((path + "-shm").c_str(), O_RDONLY | O_CLOEXEC));
  lock(found->second.index, F_RDLCK, kIndexInUse, 1);
}

void FileGuard::release(File file, const std::function<void()>& close) {
  const core::MutexLock guard(mutex_);
  const auto found = held_.find(file);
  const bool last = found != held_.end() && --found->second.users == 0;
  if (last) {
    lock(found->second.file, F_UNLCK, kSharedFirst, kSharedSize);
    lock(found->second.index, F_UNLCK, kIndexInUse, 1);
  }
  close();
  if (last) held_.erase(found);
}

void FileGuard::forget() {
  new (&mutex_) core::Mutex;  // its owner may be a thread that this process has not
  const core::MutexLock guard(mutex_);
  held_.clear();  // an open file's locks stay as long as the parent has it open
}

}  // namespace tocsin::ingest
