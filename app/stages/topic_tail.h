// A compacted topic that a stage reads beside its input.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/log.h"
#include "core/record_source.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

/// Follows a topic from its beginning, one bounded batch per read(). Lives on one thread. The first
/// read() opens the topic.
class TopicTail {
 public:
  using Open = std::function<core::Result<std::unique_ptr<core::RecordSource>>()>;

  /// An empty `open` means that no topic is read. `failure` is the log event of a topic that cannot
  /// be read. `pause` is the time between a read() without records and the next poll. `log`
  /// outlives the tail.
  TopicTail(Open open, core::Log& log, std::string failure, core::Duration pause = {})
      : open_(std::move(open)), log_(log), failure_(std::move(failure)), pause_(pause) {}

  /// Polls without waiting. `now` is steady. False: the next poll is not due, or the topic cannot
  /// be read. After an error the tail pauses for 5 s and opens the topic again from its beginning:
  /// `take` then gets the same records once more.
  bool read(core::Duration now, core::RecordHandler take);
  /// The next read() opens the topic from its beginning, without a pause.
  void start_over();

 private:
  void postpone(const core::Error& error, core::Duration now);

  Open open_;
  core::Log& log_;
  std::string failure_;
  core::Duration pause_;
  std::unique_ptr<core::RecordSource> source_;
  std::optional<core::Duration> next_;
};

}  // namespace tocsin::app
