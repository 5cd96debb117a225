// Records as events of the stream.
#pragma once

#include <optional>
#include <string>

#include "app/api/api_rows.h"
#include "app/api/histories.h"
#include "app/api/stream_hub.h"
#include "app/api/topic_watch.h"
#include "core/clock.h"

namespace tocsin::app {

/// Tells what happens once the topics are read to their end; what was there before is for lists.
class StreamFeed final : public TopicWatch {
 public:
  /// All outlive it. `deliveries` and `commands` see each record before it.
  StreamFeed(StreamHub& hub, const RecentDeliveries& deliveries, const CommandHistory& commands,
             RoutingSight sight, const core::Clock& clock)
      : hub_(hub), deliveries_(deliveries), commands_(commands), sight_(sight), clock_(clock) {}

  void start_over() override;
  void saw(const core::RecordView& record, const TopicView& view) override;
  void stands(bool at_end, const std::string& why_not) override;

 private:
  void tell_issue(const core::RecordView& record, const TopicView& view);
  void tell_delivery(const core::RecordView& record, const TopicView& view);
  void tell_command(const core::RecordView& record);
  void tell_ack(const core::RecordView& record);
  void tell_silence(const core::RecordView& record, const TopicView& view);

  StreamHub& hub_;
  const RecentDeliveries& deliveries_;
  const CommandHistory& commands_;
  const RoutingSight sight_;
  const core::Clock& clock_;
  bool at_end_ = false;               // they were, once
  core::WallTime newest_{};           // record that was seen
  std::optional<HeldBackView> held_;  // nullopt: what it knows is old
  std::string told_;                  // how things stood when it was told
  core::Duration told_at_{};          // steady
};

}  // namespace tocsin::app
