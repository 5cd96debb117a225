// One long poll of the stream: what happened since, as one JSON answer, for clients without server-sent events.
#pragma once

#include <string>
#include <utility>

#include "app/api/stream_hub.h"

namespace tocsin::app {

/// Answers at once if something waits, if the client does not say since when, or if what came since
/// is not kept; else with the first event, or with none after `patience`.
class StreamPoll final : public HttpStream {
 public:
  StreamPoll(std::shared_ptr<StreamHub> hub, std::string who, StreamFilter filter,
             std::chrono::milliseconds patience)
      : hub_(std::move(hub)),
        who_(std::move(who)),
        filter_(std::move(filter)),
        patience_(patience) {}
  ~StreamPoll() override { hub_->leave(who_); }

  void attach(std::function<void()> wake) override { hub_->attach(this, std::move(wake)); }
  void detach() override { hub_->detach(this); }
  Piece take() override;
  [[nodiscard]] std::string idle() const override;
  [[nodiscard]] bool ends_idle() const override { return true; }
  [[nodiscard]] std::chrono::milliseconds idle_after() const override { return patience_; }

 private:
  friend class StreamHub;
  [[nodiscard]] std::string body(std::string_view events) const;

  std::shared_ptr<StreamHub> hub_;
  const std::string who_;
  const StreamFilter filter_;
  const std::chrono::milliseconds patience_;
  std::uint64_t sent_ = 0;  // number of the last event that was looked at
  std::string reset_;       // why something was left out; empty: nothing was
  bool at_once_ = false;
};

}  // namespace tocsin::app
