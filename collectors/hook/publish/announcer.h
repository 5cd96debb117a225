// What the worker says of itself: start, heartbeat, gaps, answers to commands, end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/hook/capture/cadence.h"
#include "collectors/hook/publish/frame_batcher.h"
#include "core/command.h"
#include "core/labels.h"

namespace tocsin::hook {

struct SessionOptions {
  Identity identity;
  core::Labels labels;
  std::string framework;
  std::string version;
  std::string cluster;
  std::uint64_t incarnation = 0;  // wall ns when the client opened
};

/// Not thread-safe.
class Announcer {
 public:
  static constexpr core::Duration kHeartbeat = std::chrono::seconds(5);
  static constexpr core::Duration kDictionaryAgain = std::chrono::minutes(5);

  /// Borrows everything.
  Announcer(const SessionOptions& options, const CapturePlan& plan, FrameBatcher& frames,
            const StepCounter& steps, const core::Clock& clock, SendQueue& queue);

  /// Says `start` if nothing has said it yet.
  void ensure_started();
  /// Says it again, with the step that a resumed run continues from.
  void start(std::optional<std::int64_t> continues_from);
  /// What the run is captured by has changed: `start` again, if it was said.
  void start_again();
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// Sends what waited long enough, heartbeats, the dictionary again, gaps. Returns how long until
  /// the next call is due at the latest.
  core::Duration tick();
  /// Records that had left the queue were lost: a `gap` without counts (sequence numbers have
  /// them), and what every reader needs again.
  void delivery_failed(std::string_view why);
  /// Elements of a tensor were asked for and do not go out from this step on: a `gap`.
  void skipped_raw(std::string_view reason);
  /// From the next step on the governor's factor is another. `thinned`: factor by collection.
  void stretched(std::int64_t factor, core::ValueMap thinned);
  /// A command was answered: `applied` is a record of its own beside the acknowledgement.
  void answered(core::Ack ack);
  void ack(core::Ack ack);
  void preflight(core::Value findings);
  /// The loop's own word: it goes on, and will be heard of again in so many seconds (0: no promise).
  void progress(double expect_next_in);
  /// What the loop was found to do wrong by its calls (Cadence); empty: nothing.
  [[nodiscard]] std::string_view wrong_calls() const noexcept { return wrong_calls_; }
  void leave(std::string_view reason);
  /// The last record.
  void end(const core::Lifecycle& end);

 private:
  void tell_gaps();
  void look_at_calls(core::Duration since);

  const SessionOptions& options_;
  const CapturePlan& plan_;
  FrameBatcher& frames_;
  const StepCounter& steps_;
  const core::Clock& clock_;
  SendQueue& queue_;
  const core::Duration opened_;  // this and the next two: monotonic
  core::Duration last_heartbeat_;
  core::Duration last_dictionary_;
  std::int64_t ticked_at_ = 0;  // global step at the last tick()
  Cadence cadence_;
  std::string_view wrong_calls_;
  bool started_ = false;
  std::optional<std::int64_t> continues_from_;
  bool ended_ = false;
};

}  // namespace tocsin::hook
