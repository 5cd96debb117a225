// What every function of the C interface stands in: errors become results, handles of another
// process are refused.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "collectors/hook/abi/process.h"
#include "collectors/hook/tocsin_client.h"

namespace tocsin::hook {

/// Keeps the first 2 KiB of `words` for tocsin_last_error() of this thread, and gives `code`.
std::int32_t fail(std::int32_t code, const std::string& words);

/// Result of `call()`; TOCSIN_INTERNAL when it throws.
template <typename F>
std::int32_t guarded(F&& call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    try {
      return fail(TOCSIN_INTERNAL, error.what());
    } catch (...) {
      return TOCSIN_INTERNAL;
    }
  } catch (...) {
    return TOCSIN_INTERNAL;
  }
}

/// The handle was opened by this process, not by the one we forked from.
inline bool is_ours(const tocsin_client* handle) noexcept {
  return handle != nullptr &&
         handle->generation == process().generation.load(std::memory_order_relaxed);
}

/// Runs `call(Client&)` on a live handle of this process.
template <typename F>
std::int32_t with(tocsin_client* handle, F&& call) noexcept {
  if (!is_ours(handle)) return TOCSIN_DISABLED;
  return guarded([&] { return call(*handle->client); });
}

}  // namespace tocsin::hook
