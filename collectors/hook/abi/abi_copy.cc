// The C interface, fourth part: the telemetry of a run, copied from a cluster.
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "collectors/hook/abi/abi_guard.h"
#include "collectors/hook/client/run_copy.h"
#include "collectors/hook/identity/bounded_json.h"

namespace hook = tocsin::hook;
namespace core = tocsin::core;

struct tocsin_copy {
  std::unique_ptr<hook::RunCopy> copy;
  std::string run;
};

namespace {

using hook::fail;
using hook::guarded;

std::int32_t not_copied(const core::Error& error) {
  (void)fail(0, error.message);
  if (error.code == core::Code::not_found) return TOCSIN_NOT_FOUND;
  return error.retryable() ? TOCSIN_TIMEOUT : TOCSIN_INVALID;
}

}  // namespace

extern "C" {

int32_t tocsin_copy_open(const char* options, size_t length, tocsin_copy** out) {
  return guarded([&]() -> std::int32_t {
    if (options == nullptr || out == nullptr) {
      return fail(TOCSIN_INVALID, "tocsin_copy_open: options, and a place for the copy");
    }
    *out = nullptr;
    const auto given = hook::parse_given({options, length});
    if (!given.is_object()) return fail(TOCSIN_INVALID, "tocsin_copy_open: options are an object");
    const auto text = [&](const char* key) {
      const auto at = given.find(key);
      return at != given.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    if (text("directory").empty()) {
      return fail(TOCSIN_INVALID, "tocsin_copy_open: a directory for the copy");
    }
    const auto settings =
        hook::load_settings({text("out"), text("config"), {}, {}}, hook::this_process());
    if (!settings) return fail(TOCSIN_INVALID, settings.error().message);
    auto opened = hook::RunCopy::open(*settings, text("run"), text("directory"));
    if (!opened) return not_copied(opened.error());
    auto made = std::make_unique<tocsin_copy>();
    made->run = core::to_text((*opened)->run());
    made->copy = *std::move(opened);
    *out = made.release();
    return TOCSIN_OK;
  });
}

const char* tocsin_copy_run(tocsin_copy* copy) { return copy == nullptr ? "" : copy->run.c_str(); }

int32_t tocsin_copy_next(tocsin_copy* copy, uint32_t milliseconds, uint64_t* records) {
  return guarded([&]() -> std::int32_t {
    if (copy == nullptr || records == nullptr) {
      return fail(TOCSIN_INVALID, "tocsin_copy_next: a copy, and a place for the number");
    }
    const auto copied = copy->copy->next(std::chrono::milliseconds(milliseconds));
    if (!copied) return not_copied(copied.error());
    *records = *copied;
    return TOCSIN_OK;
  });
}

int32_t tocsin_copy_close(tocsin_copy* copy) {
  return guarded([&]() -> std::int32_t {
    delete copy;
    return TOCSIN_OK;
  });
}

}  // extern "C"
