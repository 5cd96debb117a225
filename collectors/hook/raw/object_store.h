// Objects in an S3-compatible store, by the libcurl of the system: it is loaded when a store is used,
// so that the hook's library needs none.
#pragma once

#include <memory>

#include "collectors/hook/raw/blob_store.h"
#include "config/config.h"

namespace tocsin::hook {

/// The store of `config.to` (s3://bucket/prefix). Errors: unavailable (no libcurl that can sign),
/// invalid_argument. Credentials are looked for at every request, so that new ones are taken.
core::Result<std::unique_ptr<BlobStore>> open_object_store(const RawConfig& config,
                                                           const config::Environment& environment);

}  // namespace tocsin::hook
