// Server-sent events to many readers out of one ring: who reads slowly costs no memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/serve/http_stream.h"
#include "core/clock.h"
#include "core/identity.h"
#include "core/mutex.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/value.h"

namespace tocsin::app {

/// What a reader wants. Empty sets: everything.
struct StreamFilter {
  std::set<std::string> types;
  std::set<core::RunUid> runs;

  /// Does it want an event about these runs? `reset` is wanted by everybody.
  [[nodiscard]] bool takes(const std::string& type, const std::vector<core::RunUid>& runs) const;
};

struct StreamLimits {
  std::size_t ring = 10'000;                  // events that can be sent again
  std::size_t ring_bytes = 16 * 1024 * 1024;  // and their bytes
  std::size_t streams = 256;                  // of this process
  std::size_t streams_of_one = 16;            // of one address or person
  std::size_t waiting_bytes = 256 * 1024;     // of one reader, then it is cut off
  std::chrono::milliseconds idle{15'000};     // then a comment
};

class StreamPoll;  // stream_poll.h
class StreamReader;

/// Thread-safe. Lives as long as its readers, which hold it.
class StreamHub : public std::enable_shared_from_this<StreamHub> {
 public:
  /// The event types of a filter.
  static const std::vector<std::string>& types();

  /// `open`: is told how many streams there are; lives as long as the hub.
  static std::shared_ptr<StreamHub> create(const core::Clock& clock, StreamLimits limits = {},
                                           core::Gauge* open = nullptr);

  /// An event for all readers whose filter takes it. `runs`: those it is about; empty: of none, and
  /// then every filter by run takes it. Nothing is kept before the first reader.
  void publish(std::string_view type, const std::vector<core::RunUid>& runs,
               const core::Value& data);
  [[nodiscard]] bool has_begun() const;

  /// resource_exhausted: too many streams of this process, or of `who`. `last_event_id`: where to go
  /// on; empty: now.
  core::Result<std::shared_ptr<HttpStream>> open(const std::string& who, StreamFilter filter,
                                                 std::string_view last_event_id);
  /// One answer in JSON, with what came behind `last_event_id`; errors are those of open(). Empty:
  /// the answer comes at once, and only says where the stream is now.
  core::Result<std::shared_ptr<HttpStream>> poll(const std::string& who, StreamFilter filter,
                                                 std::string_view last_event_id,
                                                 std::chrono::milliseconds patience);

 private:
  friend class StreamPoll;
  friend class StreamReader;
  struct Event {
    std::uint64_t number = 0;
    std::string type;
    std::vector<core::RunUid> runs;
    std::string text;  // as it is sent
  };
  StreamHub(const core::Clock& clock, StreamLimits limits, core::Gauge* open);
  [[nodiscard]] std::string framed(std::uint64_t number, std::string_view type,
                                   const core::Value& data) const;
  [[nodiscard]] static std::string as_json(const Event& event);
  [[nodiscard]] std::string hello() const REQUIRES(mutex_);
  [[nodiscard]] std::string reset(std::string_view reason) const REQUIRES(mutex_);
  /// The event after which to go on; nullopt: it is not in the ring.
  [[nodiscard]] std::optional<std::uint64_t> place_of(std::string_view id) const REQUIRES(mutex_);
  core::Status enter(const std::string& who) REQUIRES(mutex_);
  void tell_open() REQUIRES(mutex_);
  void leave(const std::string& who);
  void attach(const HttpStream* reader, std::function<void()> wake);
  void detach(const HttpStream* reader);
  void heard(const HttpStream* reader) REQUIRES(mutex_);

  const core::Clock& clock_;
  const StreamLimits limits_;
  core::Gauge* const open_gauge_;
  const std::string store_;  // of this process, so that another one's ids are not mistaken
  mutable core::Mutex mutex_;
  bool begun_ GUARDED_BY(mutex_) = false;
  std::uint64_t newest_ GUARDED_BY(mutex_) = 0;
  std::deque<Event> ring_ GUARDED_BY(mutex_);
  std::size_t ring_bytes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::size_t> open_ GUARDED_BY(mutex_);  // by address or person
  std::size_t open_count_ GUARDED_BY(mutex_) = 0;
  struct Wake {
    std::function<void()> call;
    bool called = false;  // and nothing was taken since
  };
  std::map<const HttpStream*, Wake> wakes_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::app
