#include "collectors/hook/raw/blob_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "collectors/hook/raw/object_store.h"

namespace tocsin::hook {
namespace {

constexpr std::string_view kFile = "file://";
constexpr std::string_view kObject = "s3://";

core::Error file_error(const std::string& what, const std::string& path, int number) {
  core::Code code = core::Code::failed_precondition;
  if (number == ENOSPC || number == EDQUOT) code = core::Code::resource_exhausted;
  if (number == EIO || number == ESTALE || number == EAGAIN || number == ENFILE ||
      number == EMFILE) {
    code = core::Code::unavailable;
  }
  if (number == EACCES || number == EPERM || number == EROFS) code = core::Code::permission_denied;
  if (number == ENOENT) code = core::Code::not_found;
  return {code, what + " " + path + ": " + std::strerror(number)};
}

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

class BlobDirectory final : public BlobStore {
 public:
  explicit BlobDirectory(std::string directory) : directory_(std::move(directory)) {}

  core::Status put(const std::string& key, std::span<const std::byte> bytes,
                   const Stop& /*stop*/) override {
    const std::string path = directory_ + "/" + key;
    const std::string part = path + ".part";
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
    if (failed) return file_error("cannot make the folder of", path, failed.value());
    if (auto written = write(part, bytes); !written) {
      ::unlink(part.c_str());
      return written;
    }
    if (::rename(part.c_str(), path.c_str()) != 0) return file_error("cannot name", path, errno);
    return core::ok();
  }

  core::Result<std::vector<std::byte>> get(const std::string& uri, std::uint64_t offset,
                                           std::uint64_t bytes) override {
    const std::string path = uri.substr(kFile.size());
    const OpenFile file(path, O_RDONLY);
    if (file.get() < 0) return file_error("cannot open", path, errno);
    struct stat status {};
    if (fstat(file.get(), &status) != 0) return file_error("cannot look at", path, errno);
    const auto size = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
    if (offset > size || bytes > size - offset) {
      return core::Error{core::Code::data_loss, path + " is shorter than its reference says"};
    }
    std::vector<std::byte> out(bytes);
    for (std::size_t at = 0; at < out.size();) {
      const ssize_t got =
          ::pread(file.get(), out.data() + at, out.size() - at, static_cast<off_t>(offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return file_error("cannot read", path, got == 0 ? EIO : errno);
      at += static_cast<std::size_t>(got);
    }
    return out;
  }

  [[nodiscard]] std::string uri(const std::string& key) const override {
    return std::string(kFile) + directory_ + "/" + key;
  }

 private:
  static core::Status write(const std::string& part, std::span<const std::byte> bytes) {
    const OpenFile file(part, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.get() < 0) {
      const int number = errno;
      return file_error("cannot write", part, number == ENOENT ? EIO : number);
    }
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t put = ::write(file.get(), bytes.data() + at, bytes.size() - at);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return file_error("cannot write", part, errno);
      at += static_cast<std::size_t>(put);
    }
    return core::ok();
  }

  const std::string directory_;
};

}  // namespace

core::Result<std::unique_ptr<BlobStore>> open_blobs(const RawConfig& config) {
  if (config.in_store()) return open_object_store(config, config::process_environment());
  std::error_code failed;
  const auto directory = std::filesystem::absolute(config.to, failed).lexically_normal();
  if (failed) return file_error("cannot use", config.to, failed.value());
  std::string path = directory.string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return std::unique_ptr<BlobStore>(std::make_unique<BlobDirectory>(std::move(path)));
}

core::Result<std::unique_ptr<BlobStore>> blobs_of(const std::string& uri, RawConfig config) {
  if (uri.starts_with(kFile)) {
    config.to = "/";
    return open_blobs(config);
  }
  if (uri.starts_with(kObject)) {
    config.to = uri.substr(0, uri.find('/', kObject.size()));
    return open_blobs(config);
  }
  return core::invalid_argument(uri + ": no such kind of place");
}

}  // namespace tocsin::hook
