// Objects in a directory or in an S3-compatible store: written whole, read in part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectors/hook/capture/raw_config.h"
#include "core/result.h"

namespace tocsin::hook {

/// One thread at a time. Errors: retryable ones may pass (a full disk, a store that does not
/// answer), others do not (no access, no such bucket).
class BlobStore {
 public:
  using Stop = std::function<bool()>;

  virtual ~BlobStore() = default;
  /// Readers see all of it or nothing. `key`: "folder/name", of letters, digits and `-._`.
  virtual core::Status put(const std::string& key, std::span<const std::byte> bytes,
                           const Stop& stop) = 0;
  /// `bytes` of an object from `offset` on. Errors: not_found, out_of_range (it is shorter).
  virtual core::Result<std::vector<std::byte>> get(const std::string& uri, std::uint64_t offset,
                                                   std::uint64_t bytes) = 0;
  [[nodiscard]] virtual std::string uri(const std::string& key) const = 0;
};

/// The store of `to` (a directory or s3://bucket/prefix). Errors: invalid_argument (credentials,
/// endpoint), unavailable (what the store needs is not on this machine).
core::Result<std::unique_ptr<BlobStore>> open_blobs(const RawConfig& config);
/// The store that holds what `uri` names; `config` says how to reach it.
core::Result<std::unique_ptr<BlobStore>> blobs_of(const std::string& uri, RawConfig config);

}  // namespace tocsin::hook
