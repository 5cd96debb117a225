#include "app/api/trace_objects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "app/api/trace_slice.h"
#include "collectors/hook/raw/blob_store.h"
#include "core/frame.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kInFile = "file://";
constexpr std::string_view kInStore = "s3://";
constexpr std::size_t kReadAtOnce = 4 << 20;  // bytes of an object
constexpr std::size_t kLargestFrame = 1 << 20;
constexpr auto kObjectNeverIdle = std::chrono::hours(1);

core::Error outside_of_places() {
  return {core::Code::permission_denied, "it is in none of the places of insights.traces.from"};
}

bool is_below(std::string_view path, std::string_view place) {
  while (place.size() > 1 && place.ends_with('/')) place.remove_suffix(1);
  if (place == "/") return path.starts_with('/');
  return path.size() > place.size() + 1 && path.starts_with(place) && path[place.size()] == '/';
}

/// An object whose name a path would read otherwise than a prefix does.
bool leads_elsewhere(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/").find(c) != std::string_view::npos;
  };
  return !std::all_of(name.begin(), name.end(), plain) ||
         name.find("//") != std::string_view::npos || name.find("/.") != std::string_view::npos;
}

class FileTrace final : public TraceObject {
 public:
  FileTrace(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~FileTrace() override { ::close(descriptor_); }

  core::Result<std::vector<std::byte>> get(std::uint64_t offset, std::uint64_t bytes) override {
    std::vector<std::byte> out(bytes);
    for (std::size_t at = 0; at < out.size();) {
      const ssize_t got =
          ::pread(descriptor_, out.data() + at, out.size() - at, static_cast<off_t>(offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return core::Error{core::Code::unavailable, path_ + ": " + std::strerror(errno)};
      if (got == 0)
        return core::Error{core::Code::data_loss, path_ + " is shorter than the topic says"};
      at += static_cast<std::size_t>(got);
    }
    return out;
  }

 private:
  int descriptor_;
  std::string path_;
};

class StoreTrace final : public TraceObject {
 public:
  StoreTrace(std::unique_ptr<hook::BlobStore> store, std::string uri)
      : store_(std::move(store)), uri_(std::move(uri)) {}

  core::Result<std::vector<std::byte>> get(std::uint64_t offset, std::uint64_t bytes) override {
    return store_->get(uri_, offset, bytes);
  }

 private:
  std::unique_ptr<hook::BlobStore> store_;
  std::string uri_;
};

// Links are followed first, and where they lead is looked at last: nothing can change in between.
core::Result<std::unique_ptr<TraceObject>> open_file(const std::string& path,
                                                     const std::vector<std::string>& places) {
  // Nothing outside is even opened: a device might notice.
  const std::unique_ptr<char, decltype(&std::free)> asked(::realpath(path.c_str(), nullptr),
                                                          &std::free);
  const int number = errno;
  const auto in_place = [&](std::string_view real) {
    return std::any_of(places.begin(), places.end(), [&](const std::string& place) {
      if (!place.starts_with('/')) return false;
      const std::unique_ptr<char, decltype(&std::free)> root(::realpath(place.c_str(), nullptr),
                                                             &std::free);
      return root != nullptr && is_below(real, root.get());
    });
  };
  if (asked == nullptr) {
    const bool named = std::any_of(places.begin(), places.end(), [&](const std::string& place) {
      return place.starts_with('/') && is_below(path, place);
    });
    if (!named || leads_elsewhere(path)) return outside_of_places();
    return core::Error{number == EACCES ? core::Code::permission_denied : core::Code::not_found,
                       path + ": " + std::strerror(number)};
  }
  if (!in_place(asked.get())) return outside_of_places();
  const int descriptor =
      ::open(asked.get(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    return core::Error{errno == EACCES ? core::Code::permission_denied : core::Code::not_found,
                       path + ": " + std::strerror(errno)};
  }
  auto out = std::make_unique<FileTrace>(descriptor, path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return core::Error{core::Code::permission_denied, path + " is no plain file"};
  std::string real(PATH_MAX, '\0');
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), real.data(), real.size());
  real.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (!in_place(real)) return outside_of_places();
  return std::unique_ptr<TraceObject>(std::move(out));
}

core::Result<std::unique_ptr<TraceObject>> open_stored(const std::string& uri,
                                                       const insights::TracePlaces& places) {
  const bool allowed =
      !leads_elsewhere(std::string_view(uri).substr(kInStore.size())) &&
      std::any_of(places.from.begin(), places.from.end(), [&](const std::string& place) {
        return place.starts_with(kInStore) && is_below(uri, place);
      });
  if (!allowed) return outside_of_places();
  hook::RawConfig reach;
  reach.endpoint = places.endpoint;
  reach.region = places.region;
  auto store = hook::blobs_of(uri, reach);
  if (!store) return store.error();
  return std::unique_ptr<TraceObject>(std::make_unique<StoreTrace>(*std::move(store), uri));
}

/// The frame that `bytes` begin with; nullopt: it goes on behind them. data_loss: it is none.
core::Result<std::optional<std::size_t>> frame_in(std::span<const std::byte> bytes) {
  if (bytes.size() < core::kFrameHeaderBytes) return std::optional<std::size_t>();
  core::FrameHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  const std::size_t size = std::size_t{header.header_length} + header.body_length;
  if (size < core::kFrameHeaderBytes || size > kLargestFrame + core::kFrameHeaderBytes)
    return core::Error{core::Code::data_loss, "no frame of ours is there"};
  if (size > bytes.size()) return std::optional<std::size_t>();
  return std::optional(size);
}

class ObjectStream final : public HttpStream {
 public:
  ObjectStream(std::unique_ptr<TraceObject> object, const core::RunUid& run, const SentTrace& trace,
               const TracePlace& place, ByteRange range, std::shared_ptr<std::atomic<int>> open)
      : object_(std::move(object)),
        chunks_(run, trace),
        slice_(range),
        next_(place.object_offset),
        end_(place.object_offset + place.object_bytes),
        open_(std::move(open)) {}
  ObjectStream(const ObjectStream&) = delete;
  ObjectStream& operator=(const ObjectStream&) = delete;
  ~ObjectStream() override { open_->fetch_sub(1); }

  void attach(std::function<void()> /*wake*/) override {}
  void detach() override {}
  Piece take() override {
    Piece out;
    while (out.text.empty() && !out.torn && !slice_.done()) out.torn = !read_on(out) || out.torn;
    out.last = !out.torn && slice_.done();
    return out;
  }
  [[nodiscard]] bool may_wait() const override { return true; }
  [[nodiscard]] std::string idle() const override { return {}; }
  [[nodiscard]] std::chrono::milliseconds idle_after() const override { return kObjectNeverIdle; }

 private:
  /// False: the object ends, or holds something else.
  bool read_on(Piece& out) {
    const std::uint64_t size = std::min<std::uint64_t>(kReadAtOnce, end_ - next_);
    if (size == 0) return false;
    const auto bytes = object_->get(next_, size);
    if (!bytes) return false;
    std::span<const std::byte> rest = *bytes;
    while (!slice_.done()) {
      const auto frame = frame_in(rest);
      if (!frame) return false;
      if (!*frame) break;
      const auto chunk = chunks_.chunk_of(rest.first(**frame));
      if (!chunk) return false;
      slice_.add(*chunk, out);
      rest = rest.subspan(**frame);
    }
    next_ += size - rest.size();
    return slice_.done() || rest.size() < size;
  }

  std::unique_ptr<TraceObject> object_;
  TraceChunks chunks_;
  TraceSlice slice_;
  std::uint64_t next_;  // byte of the object
  std::uint64_t end_;
  std::shared_ptr<std::atomic<int>> open_;
};

}  // namespace

core::Result<std::unique_ptr<TraceObject>> TraceObjects::open(const std::string& uri) const {
  if (uri.starts_with(kInFile)) return open_file(uri.substr(kInFile.size()), places_.from);
  if (uri.starts_with(kInStore)) return open_stored(uri, places_);
  return outside_of_places();
}

core::Result<std::unique_ptr<TraceObject>> TraceObjects::open(const core::RunUid& run,
                                                              const SentTrace& trace,
                                                              const TracePlace& place) const {
  auto object = open(place.uri);
  if (!object) return object.error();
  const std::uint64_t most = kLargestFrame + core::kFrameHeaderBytes;
  const auto begin = (*object)->get(place.object_offset, std::min(most, place.object_bytes));
  if (!begin) return begin.error();
  const auto frame = frame_in(*begin);
  const bool whole = frame && *frame;
  if (!whole || !TraceChunks(run, trace).chunk_of(std::span(*begin).first(**frame)))
    return core::Error{core::Code::data_loss, place.uri + " does not hold this trace any more"};
  return std::move(*object);
}

std::shared_ptr<HttpStream> object_stream(std::unique_ptr<TraceObject> object,
                                          const core::RunUid& run, const SentTrace& trace,
                                          const TracePlace& place, ByteRange range,
                                          std::shared_ptr<std::atomic<int>> open) {
  return std::make_shared<ObjectStream>(std::move(object), run, trace, place, range,
                                        std::move(open));
}

}  // namespace tocsin::app
