// The topic `registry`: what the engine of each run's first shard wrote about the run. An engine with
// further shards of such runs reads it.
#pragma once

#include <map>

#include "app/stages/topic_tail.h"
#include "core/issue.h"
#include "core/log.h"
#include "core/time.h"

namespace tocsin::app {

/// Lives on the thread of one engine. The first read() opens the topic.
class RegistryReader {
 public:
  RegistryReader(TopicTail::Open open, core::Log& log);

  /// Reads some records, at most once a second while none come. True: something may be new.
  bool read(core::Duration now);
  /// The newest event of the run; nullptr: the topic has none so far.
  [[nodiscard]] const core::JobEvent* find(const core::RunUid& run) const;
  /// Forgets everything, for another engine.
  void start_over();

 private:
  TopicTail tail_;
  std::map<core::RunUid, core::JobEvent> runs_;  // an error leaves them as they are
};

}  // namespace tocsin::app
