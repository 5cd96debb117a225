// What the engines of other partitions said of runs that ours are compared with: the topic
// `comparisons`, read by whoever has a use for it, and handed to each partition from its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "core/log.h"
#include "core/record_source.h"
#include "core/result.h"
#include "rules/rules.h"

namespace tocsin::app {

/// Lives on the thread of one engine. Nothing is opened before the first feed().
class ComparisonReader {
 public:
  using Open = std::function<core::Result<std::unique_ptr<core::RecordSource>>()>;

  ComparisonReader(Open open, core::Log& log) : open_(std::move(open)), log_(log) {}

  /// Reads on, and hands the partition what it was not handed yet, some records at a time. True:
  /// more is there. From the beginning where `want` is not what it was.
  bool feed(std::int32_t partition, std::uint64_t want, core::Duration now,
            core::FunctionRef<void(const rules::Comparison&)> learn);
  /// It is not ours any more.
  void forget(std::int32_t partition) { handed_.erase(partition); }
  /// With another engine, which knows nothing.
  void start_over();

 private:
  void read(core::Duration now);

  Open open_;
  core::Log& log_;
  std::unique_ptr<core::RecordSource> source_;
  core::Duration next_try_{};
  /// By key, in the order of the newest records: an older one of the same key says nothing any more.
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
