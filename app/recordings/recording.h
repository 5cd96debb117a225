// Reading recorded topics: all of one, or a span of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/function_ref.h"
#include "core/record_source.h"
#include "core/result.h"
#include "core/time.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// One end of a span: a time, a position in one partition, or neither.
struct Bound {
  std::optional<core::WallTime> time;
  std::optional<std::int64_t> offset;
};

/// "2026-11-22T14:00:00Z" (or with another offset from UTC), "2026-11-22" (its beginning, UTC),
/// "now", "2h" (so long before `now`), "@1200" (an offset). Empty: no bound. invalid_argument:
/// anything else, with `option` and what is expected.
core::Result<Bound> parse_bound(std::string_view option, const std::string& text,
                                core::WallTime now);

/// From the first record that is not older than `from` up to the last that is older than `to`.
struct Span {
  Bound from;
  Bound to;
  std::optional<std::int32_t> partition;  // only this one
};
/// invalid_argument: ends before it begins, or an offset without a partition where there are
/// several. `since`, `until`: what the user calls the two ends.
core::Status check_span(const Span& span, bool several_partitions,
                        const std::string& since = "--since", const std::string& until = "--until");

struct RecordingEnd {
  std::uint64_t gaps = 0;  // places where records are missing
};

/// Reads a span little by little, as nobody: no group, no position, no lease. One thread.
class RecordingReader {
 public:
  static core::Result<std::unique_ptr<RecordingReader>> open(ingest::Transport& transport,
                                                             std::string_view topic, Span span);
  ~RecordingReader();

  /// Hands the next records of the span to `handle`, each partition's in its order, waiting at most
  /// a tenth of a second for the first. true: that was all of it. deadline_exceeded: nothing came
  /// for a minute. `most`: records at once, for who holds what they have.
  core::Result<bool> read(core::RecordHandler handle, std::size_t most = kUsualBatch);
  [[nodiscard]] const RecordingEnd& end() const noexcept { return end_; }

  static constexpr std::size_t kUsualBatch = 1024;

 private:
  class Assigned;
  struct Stream {
    core::StreamPartition where;
    bool over = false;    // nothing of the span comes any more
    bool paused = false;  // and it is not read any more
  };
  RecordingReader(std::string_view topic, Span span);
  core::Status begin();
  core::Status begin(Stream& stream);
  void take(const core::RecordView& record, core::RecordHandler handle);
  core::Status pause_ended();
  [[nodiscard]] bool at_end() const;

  const std::string topic_;
  const Span span_;
  std::unique_ptr<Assigned> assigned_;
  std::unique_ptr<core::RecordSource> source_;  // after assigned_, which it tells
  std::map<std::int32_t, Stream> streams_;
  bool begun_ = false;
  int waits_ = 0;  // in a row without a record
  RecordingEnd end_;
};

/// All of the span, at once. `between` is called now and then, between two records.
core::Result<RecordingEnd> read_recording(ingest::Transport& transport, std::string_view topic,
                                          const Span& span, core::RecordHandler handle,
                                          core::FunctionRef<void()> between);

}  // namespace tocsin::app
