// The journal's folder: who may write here, which writers and segments there are, what may go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "core/result.h"
#include "core/time.h"

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

/// Makes `directory` and its journal.json when they are missing. Errors: failed_precondition when
/// it belongs to another machine, lies on a network file system or has a newer format.
core::Status prepare_journal(const std::string& directory, const std::string& machine,
                             std::int64_t now);

/// Names of the writers, sorted.
std::vector<std::string> list_writers(const std::string& directory);
/// First sequences of a writer's segments, ascending.
std::vector<std::uint64_t> list_segments(const std::string& writer_directory);
/// "00000000000000000042.tcj".
std::string segment_name(std::uint64_t first_sequence);

/// The lock of a writer, held until destroyed; failed_precondition (with the holder's process id)
/// when another process has it.
core::Result<FileDescriptor> lock_writer(const std::string& writer_directory,
                                         std::string_view writer);

struct Retention {
  core::Duration age{};
  std::uint64_t bytes = 0;
};
/// Deletes whole segments that are older than `age`, then the oldest until the folder holds at most
/// `bytes`. The newest segment of a writer stays, except of a dead hook-, node- or cli- writer,
/// which goes altogether. Returns how many segments went.
std::size_t apply_journal_retention(const std::string& directory, const Retention& retention,
                                    core::WallTime now, core::Log& log);

}  // namespace tocsin::ingest
