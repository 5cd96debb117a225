// Traces that lie beside the topic, in a directory or a store: read where the configuration allows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/api/trace_bytes.h"
#include "app/api/trace_rows.h"
#include "app/serve/byte_range.h"
#include "app/serve/http_stream.h"
#include "core/identity.h"
#include "core/result.h"
#include "insights/insights.h"

namespace tocsin::app {

/// The frames of one trace in its object. One thread at a time.
class TraceObject {
 public:
  TraceObject() = default;
  TraceObject(const TraceObject&) = delete;
  TraceObject& operator=(const TraceObject&) = delete;
  virtual ~TraceObject() = default;

  /// `bytes` from `offset` of the object on, all of them.
  virtual core::Result<std::vector<std::byte>> get(std::uint64_t offset, std::uint64_t bytes) = 0;
};

/// Which places may be read. What a record names is believed only as far as that: `..`, links that lead out of a
/// place, and everything that is no plain file are refused.
class TraceObjects {
 public:
  explicit TraceObjects(insights::TracePlaces places) : places_(std::move(places)) {}

  /// Errors: permission_denied (it is in none of the places), not_found, unavailable.
  [[nodiscard]] core::Result<std::unique_ptr<TraceObject>> open(const std::string& uri) const;
  /// The same, if the first frame there is one of this trace; data_loss: it is not.
  [[nodiscard]] core::Result<std::unique_ptr<TraceObject>> open(const core::RunUid& run,
                                                                const SentTrace& trace,
                                                                const TracePlace& place) const;

 private:
  insights::TracePlaces places_;
};

/// `range` of a trace in an object. `open` counts down when it is gone.
std::shared_ptr<HttpStream> object_stream(std::unique_ptr<TraceObject> object,
                                          const core::RunUid& run, const SentTrace& trace,
                                          const TracePlace& place, ByteRange range,
                                          std::shared_ptr<std::atomic<int>> open);

}  // namespace tocsin::app
