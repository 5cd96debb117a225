// The journal's folder: whether this machine may write in it, and the locks that lie there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"

namespace tocsin::ingest {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool open() const noexcept { return fd_ >= 0; }
  int release() noexcept;
  void reset() noexcept;

 private:
  int fd_ = -1;
};

/// unavailable/resource_exhausted (disk full)/permission_denied with the path and errno's words.
core::Error file_error(std::string_view doing, const std::string& path, int error_number);

/// Hash of this machine's id; empty when it has none.
std::string machine_hash();

/// failed_precondition, with the hint to use Kafka.
core::Error refused_journal(const std::string& directory, std::string_view why);

/// Makes the folder when it is missing. Errors: failed_precondition on a network file system, or
/// when it holds the segment files of tocsin's first journal.
core::Status prepare_directory(const std::string& directory);

/// Keeps a second reader of one group out, in this process or another; ends with the process.
class GroupLock {
 public:
  /// failed_precondition, naming the process that holds it.
  static core::Result<std::shared_ptr<GroupLock>> take(const std::string& directory,
                                                       std::string_view group);
  void release() noexcept;
  [[nodiscard]] bool held() const noexcept { return held_.load(); }

 private:
  explicit GroupLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
  std::atomic<bool> held_{true};
};

}  // namespace tocsin::ingest
