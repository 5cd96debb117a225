// The C interface, third part: raw tensors read back.
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "collectors/hook/abi/abi_guard.h"
#include "collectors/hook/client/raw_reader.h"
#include "collectors/hook/identity/bounded_json.h"
#include "core/json.h"

namespace hook = tocsin::hook;
namespace core = tocsin::core;

struct tocsin_raw {
  std::unique_ptr<hook::RawReader> reader;
  hook::RawValue value;
  std::string counters;
};

namespace {

using hook::fail;
using hook::guarded;

std::string text_at(const nlohmann::json& given, const char* key) {
  const auto at = given.find(key);
  return at != given.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::int32_t refused(const core::Error& error) {
  return error.code == core::Code::not_found ? (fail(0, error.message), TOCSIN_NOT_FOUND)
                                             : fail(TOCSIN_INVALID, error.message);
}

}  // namespace

extern "C" {

int32_t tocsin_raw_open(const char* options, size_t length, tocsin_raw** out) {
  return guarded([&]() -> std::int32_t {
    if (options == nullptr || out == nullptr) {
      return fail(TOCSIN_INVALID, "tocsin_raw_open: options, and a place for the reader");
    }
    *out = nullptr;
    const auto given = hook::parse_given({options, length});
    if (!given.is_object()) return fail(TOCSIN_INVALID, "tocsin_raw_open: options are an object");
    const std::string name = text_at(given, "run");
    const auto run = core::parse_run_uid(name);
    if (!run) return fail(TOCSIN_INVALID, "run \"" + name + "\" is no uid");
    const auto settings = hook::load_settings(
        {text_at(given, "out"), text_at(given, "config"), text_at(given, "capture"), {}},
        hook::this_process());
    if (!settings) return fail(TOCSIN_INVALID, settings.error().message);
    auto source = hook::tensor_source(*settings, *run);
    if (!source) return refused(source.error());
    auto made = std::make_unique<tocsin_raw>();
    made->reader =
        std::make_unique<hook::RawReader>(*std::move(source), *run, settings->capture.raw);
    *out = made.release();
    return TOCSIN_OK;
  });
}

int32_t tocsin_raw_read(tocsin_raw* raw, const tocsin_raw_query* query, uint32_t milliseconds,
                        tocsin_raw_value* out) {
  return guarded([&]() -> std::int32_t {
    if (raw == nullptr || query == nullptr || out == nullptr || query->size < sizeof *query ||
        out->size < sizeof *out || query->mode > TOCSIN_MODE_PREDICT) {
      return fail(TOCSIN_INVALID,
                  "tocsin_raw_read: a reader, a query and a place, with their sizes");
    }
    auto read = raw->reader->read(
        {query->name, query->worker, static_cast<core::Mode>(query->mode), query->step},
        std::chrono::milliseconds(milliseconds));
    if (!read) return refused(read.error());
    raw->value = *std::move(read);
    out->data = raw->value.data.data();
    out->bytes = raw->value.data.size();
    out->dims = raw->value.dims.data();
    out->ndim = static_cast<std::uint32_t>(raw->value.dims.size());
    out->dtype = static_cast<std::int32_t>(raw->value.dtype);
    out->meta = raw->value.meta;
    out->step = raw->value.step;
    out->global_step = raw->value.global_step;
    return TOCSIN_OK;
  });
}

const char* tocsin_raw_counters(tocsin_raw* raw) {
  if (raw == nullptr) return "{}";
  (void)guarded([&]() -> std::int32_t {
    raw->counters = core::to_json(core::Value(raw->reader->counters()));
    return TOCSIN_OK;
  });
  return raw->counters.c_str();
}

int32_t tocsin_raw_close(tocsin_raw* raw) {
  return guarded([&]() -> std::int32_t {
    delete raw;
    return TOCSIN_OK;
  });
}

}  // extern "C"
