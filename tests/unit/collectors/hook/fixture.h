// What the client's tests share: a hand-moved clock, an identity, and the frames on a queue.
#pragma once

#include <string>
#include <vector>

#include "collectors/hook/publish/session.h"
#include "core/clock.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

class ManualClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override {
    return core::wall_time(1'767'323'045'000'000'000) + passed_;
  }
  [[nodiscard]] core::Duration monotonic() const override {
    return std::chrono::hours(1) + passed_;
  }
  void advance(core::Duration by) { passed_ += by; }

 private:
  core::Duration passed_{0};
};

inline Identity make_identity() {
  Identity identity;
  identity.run = core::run_uid_for("digits", "exploding");
  identity.job = "digits";
  identity.worker = "worker_0";
  identity.host = "n1";
  identity.boot_id = "1f0c93ab-0000-4000-8000-000000000000";
  identity.opened = 81'402'118'843'000;
  identity.launch = "local:1f0c93ab/50/3";
  return identity;
}

inline CapturePlan make_plan(const std::string& capture = "{}") {
  auto config = parse_capture(capture);
  auto plan = CapturePlan::compile(config.value());
  return std::move(plan).value();
}

/// The record as a reader would see it.
template <typename F>
void with_view(const core::OutRecord& record, F&& use) {
  core::RecordView view;
  view.topic = record.topic;
  view.key = record.key;
  view.tombstone = !record.value;
  if (record.value)
    view.value = std::as_bytes(std::span(record.value->data(), record.value->size()));
  view.native = &record.headers;
  view.find_header = [](const void* native, std::string_view name) {
    const auto& headers = *static_cast<const decltype(record.headers)*>(native);
    for (const auto& [key, value] : headers) {
      if (key == name) return std::optional<std::string_view>(value);
    }
    return std::optional<std::string_view>();
  };
  use(view);
}

/// A frame with the bytes it borrows from.
struct KeptFrame {
  std::string bytes;
  Precedence precedence = Precedence::control;
  [[nodiscard]] core::FrameView view() const {
    const auto decoded = ingest::decode_frame(std::as_bytes(std::span(bytes.data(), bytes.size())));
    EXPECT_TRUE(decoded) << ingest::to_string(decoded.error()) << " " << decoded.detail();
    return decoded.frame();
  }
  [[nodiscard]] core::Lifecycle lifecycle() const {
    return ingest::parse_lifecycle(view().body_text()).value();
  }
};

/// Empties the queue: telemetry as frames, the rest in `others`.
struct Drained {
  explicit Drained(SendQueue& queue) {
    while (auto item = queue.pop()) {
      if (item->record.topic == "telemetry") {
        frames.push_back({*item->record.value, item->precedence});
      } else {
        others.push_back(item->record);
      }
    }
  }
  [[nodiscard]] std::vector<KeptFrame> of(core::FrameKind kind) const {
    std::vector<KeptFrame> out;
    for (const KeptFrame& frame : frames) {
      if (frame.view().header().kind == kind) out.push_back(frame);
    }
    return out;
  }
  [[nodiscard]] std::vector<core::Lifecycle> lifecycles(core::LifecycleEvent event) const {
    std::vector<core::Lifecycle> out;
    for (const KeptFrame& frame : of(core::FrameKind::lifecycle)) {
      if (auto found = frame.lifecycle(); found.event == event) out.push_back(std::move(found));
    }
    return out;
  }
  std::vector<KeptFrame> frames;
  std::vector<core::OutRecord> others;
};

}  // namespace tocsin::hook
