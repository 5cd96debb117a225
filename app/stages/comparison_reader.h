// The topic `comparisons`: what the engines of other partitions wrote about runs that ours are
// compared with. Each partition gets it from its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "app/stages/topic_tail.h"
#include "core/function_ref.h"
#include "core/log.h"
#include "core/record.h"
#include "core/time.h"
#include "rules/rules.h"

namespace tocsin::app {

/// Lives on the thread of one engine. The first feed() opens the topic.
class ComparisonReader {
 public:
  ComparisonReader(TopicTail::Open open, core::Log& log);

  /// Reads some records, and hands the partition some that it does not have yet: from the beginning
  /// if `want` differs from the last call. True: more are there.
  bool feed(std::int32_t partition, std::uint64_t want, core::Duration now,
            core::FunctionRef<void(const rules::Comparison&)> learn);
  /// The partition is not ours any more.
  void forget(std::int32_t partition) { handed_.erase(partition); }
  /// Forgets everything, for another engine.
  void start_over();

 private:
  void keep(const core::RecordView& record);

  TopicTail tail_;
  /// By key, in the order of the newest records: an older one of the same key says nothing any more.
  /// An error leaves them as they are, and what is read again is known by its key.
  std::map<std::uint64_t, rules::Comparison> records_;
  std::map<std::string, std::uint64_t, std::less<>> places_;  // of keys among them
  std::uint64_t next_place_ = 0;
  struct Handed {
    std::uint64_t want = 0;
    std::uint64_t next = 0;  // place
  };
  std::map<std::int32_t, Handed> handed_;
};

}  // namespace tocsin::app
