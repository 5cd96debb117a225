// Carries commits out beside the loop, so that evaluation goes on while one is under way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/record_publisher.h"

namespace tocsin::app {

/// One commit at a time. Owned and called by one loop.
class Committer {
 public:
  virtual ~Committer() = default;
  /// Begins a commit. The records stay with the committer until take_back() or the next start().
  virtual void start(std::vector<core::OutRecord> records,
                     std::vector<core::Position> positions) = 0;
  /// RecordPublisher::write_ahead, also while a commit is under way.
  virtual bool write_ahead(const core::OutRecord& record) = 0;
  /// The outcome of the commit begun last, once; nullopt while it is under way or there is none.
  virtual std::optional<core::Status> poll() = 0;
  /// Waits for the outcome; ok when none is under way.
  virtual core::Status wait() = 0;
  [[nodiscard]] virtual bool busy() const = 0;
  /// After a failure: the records that were not committed, to be committed again.
  virtual std::vector<core::OutRecord> take_back() = 0;
};

/// Makes the committer of one loop. `finished` is called (on any thread) when an outcome is there.
using CommitterFactory = std::function<std::unique_ptr<Committer>(
    std::unique_ptr<core::RecordPublisher> publisher, std::function<void()> finished)>;

/// A thread of its own per committer: what the program uses.
CommitterFactory thread_committer();
/// Commits inside start(); the outcome is told by the next poll(). For tests and the simulated
/// world, where a crash may fall between the two.
CommitterFactory inline_committer();

}  // namespace tocsin::app
