// Where raw tensors go: the topic, or objects in a directory or a store with a word about each on
// the topic.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectors/hook/raw/blob_store.h"
#include "collectors/hook/raw/raw_frames.h"
#include "core/record_publisher.h"
#include "core/result.h"

namespace tocsin::hook {

/// Used by one thread, which may be kept waiting until `stop` says yes.
class RawPlace {
 public:
  using Stop = std::function<bool()>;

  virtual ~RawPlace() = default;
  /// ok: all of these tensors, of one step, are there for readers. Errors: retryable (nothing, or
  /// some of them: the same may be put again), cancelled (`stop`), others: they can never be taken.
  virtual core::Status put(const std::vector<RawTensor>& tensors, const Stop& stop) = 0;
};

/// The topic itself. `key`: of the run's records.
std::unique_ptr<RawPlace> raw_topic(std::unique_ptr<core::RecordPublisher> publisher,
                                    RawFrames frames, std::string key);

/// Objects named after `folder`, the step and a number, and references to them.
std::unique_ptr<RawPlace> raw_objects(std::unique_ptr<core::RecordPublisher> publisher,
                                      RawFrames frames, std::string key,
                                      std::unique_ptr<BlobStore> store, std::string folder);

}  // namespace tocsin::hook
