// Carries spans to where they are collected, on a thread of its own: a far side that hangs holds up no
// stage. It wakes nobody: who submits looks for the answer at its next tick.
#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "actions/actions.h"
#include "core/mutex.h"

namespace tocsin::app {

class SpanCourier {
 public:
  explicit SpanCourier(std::unique_ptr<actions::SpanExporter> exporter);
  ~SpanCourier();
  SpanCourier(const SpanCourier&) = delete;
  SpanCourier& operator=(const SpanCourier&) = delete;

  /// One parcel at a time: not before the answer to the last one was taken.
  void submit(std::vector<actions::Span> spans);
  /// The parcel comes back with what became of it.
  struct Answer {
    std::vector<actions::Span> spans;
    actions::SpanAnswer answer;
  };
  std::optional<Answer> take();

 private:
  void run(const std::stop_token& stop);

  std::unique_ptr<actions::SpanExporter> exporter_;
  core::Mutex mutex_;
  core::StoppableCondVar wake_;
  std::optional<std::vector<actions::Span>> parcel_ GUARDED_BY(mutex_);
  std::optional<Answer> answer_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of these
};

}  // namespace tocsin::app
