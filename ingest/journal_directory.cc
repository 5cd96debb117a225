#include "ingest/journal_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/identity.h"

namespace tocsin::ingest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSegmentSuffix = ".tcj";
constexpr std::size_t kSequenceDigits = 20;

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

core::Error refused(const std::string& directory, std::string_view why) {
  return {core::Code::failed_precondition,
          "journal " + directory + " " + std::string(why) +
              "; a journal belongs to one machine: use transport.kafka for several"};
}

/// Magic numbers of statfs(2): file systems whose locks and appends other machines can race with.
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

core::Status check_identity(const std::string& directory, const std::string& text,
                            const std::string& machine) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return core::Error{core::Code::data_loss,
                       directory + "/journal.json is not a JSON object; write " +
                           R"({"format":1,"machine":""})" + " into it if the journal is yours"};
  }
  const auto format = json.find("format");
  if (format == json.end() || !format->is_number_integer() || format->get<std::int64_t>() != 1) {
    return refused(directory, "has a format this version does not know (1 is known)");
  }
  const auto owner = json.find("machine");
  const std::string theirs =
      owner != json.end() && owner->is_string() ? owner->get<std::string>() : "";
  if (!theirs.empty() && !machine.empty() && theirs != machine) {
    return refused(directory,
                   "was made on another machine (if it was moved here for good, delete its "
                   "journal.json)");
  }
  return core::ok();
}

struct Segment {
  std::string writer;
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // UTC ns
  bool newest = false;
};

std::vector<Segment> all_segments(const std::string& directory) {
  std::vector<Segment> all;
  for (const auto& writer : list_writers(directory)) {
    const std::string folder = directory + "/" + writer;
    const auto sequences = list_segments(folder);
    for (const auto sequence : sequences) {
      Segment segment{writer, folder + "/" + segment_name(sequence), 0, 0,
                      sequence == sequences.back()};
      struct stat info {};
      if (::stat(segment.path.c_str(), &info) != 0) continue;
      segment.bytes = static_cast<std::uint64_t>(info.st_size);
      segment.modified =
          std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + std::int64_t{info.st_mtim.tv_nsec};
      all.push_back(std::move(segment));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Segment& a, const Segment& b) { return a.modified < b.modified; });
  return all;
}

bool comes_and_goes(std::string_view writer) {
  return writer.starts_with("hook-") || writer.starts_with("node-") || writer.starts_with("cli-");
}

/// Deletes one segment if the rules allow it.
bool drop(const Segment& segment, const std::string& directory, core::Log& log) {
  const std::string folder = directory + "/" + segment.writer;
  FileDescriptor held;
  if (segment.newest) {
    if (!comes_and_goes(segment.writer)) return false;
    auto lock = lock_writer(folder, segment.writer);
    if (!lock) return false;  // it lives
    held = std::move(*lock);
  }
  if (::unlink(segment.path.c_str()) != 0) return false;
  log.info("segment_deleted",
           {{"path", segment.path}, {"bytes", static_cast<std::int64_t>(segment.bytes)}});
  if (segment.newest) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  return true;
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
    std::string id = read_text(path);
    while (!id.empty() && (id.back() == '\n' || id.back() == ' ')) id.pop_back();
    // Images are shipped with this placeholder; it names no machine.
    if (id.empty() || id == "uninitialized") continue;
    return core::hex(core::sha256("tocsin journal " + id)).substr(0, 32);
  }
  return {};
}

core::Status prepare_journal(const std::string& directory, const std::string& machine,
                             std::int64_t now) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return file_error("making", directory, error.value());
  if (is_network(directory)) return refused(directory, "lies on a network file system");
  const std::string path = directory + "/journal.json";
  if (const std::string text = read_text(path); !text.empty()) {
    return check_identity(directory, text, machine);
  }
  // Written beside and linked, so that two processes starting together agree on the first.
  const std::string draft = path + "." + std::to_string(::getpid()) + "." + std::to_string(now);
  {
    std::ofstream out(draft, std::ios::binary | std::ios::trunc);
    out << nlohmann::json{{"format", 1}, {"machine", machine}}.dump() << "\n";
    out.flush();
    if (!out) return file_error("writing", draft, errno);
  }
  const bool empty_file = fs::exists(path, error) && fs::file_size(path, error) == 0;
  const int result =
      empty_file ? ::rename(draft.c_str(), path.c_str()) : ::link(draft.c_str(), path.c_str());
  const int why = errno;
  if (!empty_file) ::unlink(draft.c_str());
  if (result != 0 && why != EEXIST) return file_error("writing", path, why);
  if (result != 0) return check_identity(directory, read_text(path), machine);
  return core::ok();
}

std::vector<std::string> list_writers(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::uint64_t> list_segments(const std::string& writer_directory) {
  std::vector<std::uint64_t> sequences;
  std::error_code error;
  for (fs::directory_iterator it(writer_directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() != kSequenceDigits + kSegmentSuffix.size() || !name.ends_with(kSegmentSuffix)) {
      continue;
    }
    std::uint64_t sequence = 0;
    const char* last = name.data() + kSequenceDigits;
    const auto parsed = std::from_chars(name.data(), last, sequence);
    if (parsed.ec == std::errc{} && parsed.ptr == last) sequences.push_back(sequence);
  }
  std::sort(sequences.begin(), sequences.end());
  return sequences;
}

std::string segment_name(std::uint64_t first_sequence) {
  std::string digits = std::to_string(first_sequence);
  return std::string(kSequenceDigits - digits.size(), '0') + digits + std::string(kSegmentSuffix);
}

core::Result<FileDescriptor> lock_writer(const std::string& writer_directory,
                                         std::string_view writer) {
  const std::string path = writer_directory + "/lock";
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.open()) return file_error("opening", path, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return file_error("locking", path, errno);
    std::string holder = read_text(path);
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
    return core::Error{core::Code::failed_precondition,
                       "journal writer " + std::string(writer) + " is held by process " +
                           (holder.empty() ? "(unknown)" : holder) + " (" + path +
                           "); only one may append"};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // The process id is for people; a failure to note it harms nobody.
  if (::ftruncate(lock.get(), 0) == 0) {
    [[maybe_unused]] const auto written = ::pwrite(lock.get(), pid.data(), pid.size(), 0);
  }
  return lock;
}

std::size_t apply_journal_retention(const std::string& directory, const Retention& retention,
                                    core::WallTime now, core::Log& log) {
  auto segments = all_segments(directory);
  std::uint64_t total = 0;
  for (const auto& segment : segments) total += segment.bytes;
  std::size_t dropped = 0;
  for (const auto& segment : segments) {
    const core::Duration age{core::nanoseconds(now) - segment.modified};
    if (age <= retention.age && total <= retention.bytes) continue;
    if (!drop(segment, directory, log)) continue;
    total -= segment.bytes;
    ++dropped;
  }
  return dropped;
}

}  // namespace tocsin::ingest
