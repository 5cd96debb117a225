// The C interface: arguments checked, exceptions contained, JSON made.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/system_clock.h"
#include "rules/embedded/local_judge.h"
#include "rules/embedded/tocsin_engine.h"

namespace embedded = tocsin::embedded;
namespace core = tocsin::core;
using std::chrono::milliseconds;

/// Opaque to callers.
struct tocsin_engine {
  std::shared_ptr<embedded::LocalJudge> judge;
};

namespace {

// No object with a destructor: exit() destroys those of its thread first, and calls us after that.
thread_local char last_error[2048] = "no error";

std::int32_t fail(std::int32_t code, std::string_view words) noexcept {
  const std::size_t length = std::min(words.size(), sizeof last_error - 1);
  std::memcpy(last_error, words.data(), length);
  last_error[length] = '\0';
  return code;
}

template <typename F>
std::int32_t guarded(F&& call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    return fail(TOCSIN_ENGINE_INTERNAL, error.what());
  } catch (...) {
    return TOCSIN_ENGINE_INTERNAL;
  }
}

template <typename F>
std::int32_t with(tocsin_engine* engine, F&& call) noexcept {
  if (engine == nullptr) return TOCSIN_ENGINE_INVALID;
  return guarded([&] { return call(*engine->judge); });
}

// Never destroyed: a thread that was left behind may ask it.
const core::Clock& clock_of_process() {
  static const core::Clock* const made = new core::SystemClock;
  return *made;
}

std::string text(const char* given) { return given == nullptr ? std::string() : given; }

std::int32_t copy_out(const std::string& value, char* buffer, std::size_t size,
                      std::size_t* length) {
  if (length != nullptr) *length = value.size();
  if (buffer == nullptr || value.size() + 1 > size) {
    return fail(TOCSIN_ENGINE_TOO_SMALL, std::to_string(value.size() + 1) + " bytes are needed");
  }
  std::memcpy(buffer, value.c_str(), value.size() + 1);
  return TOCSIN_ENGINE_OK;
}

std::string issue_list(const std::vector<embedded::KeptIssue>& issues, std::uint64_t first) {
  std::string out = "[";
  for (const embedded::KeptIssue& kept : issues) {
    const std::string head = core::to_json(core::ValueMap{{"number", first++},
                                                          {"id", kept.issue.event_id},
                                                          {"text", kept.text},
                                                          {"told", kept.told}});
    if (out.size() > 1) out += ",";
    out += head.substr(0, head.size() - 1) + ",\"data\":" + tocsin::ingest::issue_json(kept.issue) +
           "}";
  }
  return out + "]";
}

}  // namespace

extern "C" {

int32_t tocsin_engine_abi_version(void) { return TOCSIN_ENGINE_ABI_VERSION; }

const char* tocsin_engine_last_error(void) { return last_error; }

int32_t tocsin_engine_open(const tocsin_engine_options* given, tocsin_engine** out) {
  return guarded([&]() -> std::int32_t {
    if (given == nullptr || out == nullptr || given->size < sizeof(std::uint64_t)) {
      return fail(TOCSIN_ENGINE_INVALID, "options with their size, and a place for the engine");
    }
    *out = nullptr;
    tocsin_engine_options known{};
    std::memcpy(&known, given,
                std::min<std::size_t>(sizeof known, static_cast<std::size_t>(given->size)));
    auto rules = embedded::rules_by_text(text(known.rules));
    if (!rules) return fail(TOCSIN_ENGINE_INVALID, rules.error().message);
    auto stop = embedded::StopChoice::parse(text(known.stop), rules->rules);
    if (!stop) return fail(TOCSIN_ENGINE_INVALID, stop.error().message);
    embedded::LocalJudgeOptions options;
    options.rules = std::move(*rules);
    options.stop = std::move(*stop);
    if (known.queue_bytes > 0) options.queue_bytes = known.queue_bytes;
    if (known.command != nullptr) {
      options.command = [known](const core::OutRecord& record) {
        const std::string_view value = record.value ? *record.value : std::string_view();
        std::vector<const char*> headers;
        for (const auto& [name, text] : record.headers) {
          headers.push_back(name.c_str());
          headers.push_back(text.c_str());
        }
        known.command(known.context, record.key.data(), record.key.size(), value.data(),
                      value.size(), headers.data(), record.headers.size());
      };
    }
    auto judge = embedded::LocalJudge::create(std::move(options), clock_of_process());
    if (!judge) return fail(TOCSIN_ENGINE_INVALID, judge.error().message);
    auto handle = std::make_unique<tocsin_engine>();
    handle->judge = std::move(*judge);
    handle->judge->start();
    *out = handle.release();
    return TOCSIN_ENGINE_OK;
  });
}

int32_t tocsin_engine_record(tocsin_engine* engine, const char* key, size_t key_length,
                             const void* value, size_t value_length, int64_t time) {
  return with(engine, [&](embedded::LocalJudge& judge) -> std::int32_t {
    if ((key == nullptr && key_length > 0) || (value == nullptr && value_length > 0)) {
      return fail(TOCSIN_ENGINE_INVALID, "a record without its bytes");
    }
    return judge.offer({key, key_length}, {static_cast<const char*>(value), value_length}, time)
               ? TOCSIN_ENGINE_OK
               : TOCSIN_ENGINE_DROPPED;
  });
}

int32_t tocsin_engine_issues(tocsin_engine* engine, uint64_t since, char* buffer, size_t size,
                             size_t* length) {
  return with(engine, [&](embedded::LocalJudge& judge) {
    return copy_out(issue_list(judge.issues(since), since), buffer, size, length);
  });
}

int32_t tocsin_engine_wait(tocsin_engine* engine, uint64_t seen, uint32_t ms) {
  return with(engine, [&](embedded::LocalJudge& judge) -> std::int32_t {
    // The handle may be freed by another thread meanwhile; the judge may not.
    const std::shared_ptr<embedded::LocalJudge> held = judge.shared_from_this();
    return held->wait(seen, milliseconds(ms)) ? TOCSIN_ENGINE_OK : TOCSIN_ENGINE_TIMEOUT;
  });
}

int32_t tocsin_engine_wake(tocsin_engine* engine) {
  return with(engine, [](embedded::LocalJudge& judge) -> std::int32_t {
    judge.wake();
    return TOCSIN_ENGINE_OK;
  });
}

int32_t tocsin_engine_catch_up(tocsin_engine* engine, uint32_t ms) {
  return with(engine, [&](embedded::LocalJudge& judge) -> std::int32_t {
    return judge.catch_up(milliseconds(ms)) ? TOCSIN_ENGINE_OK : TOCSIN_ENGINE_TIMEOUT;
  });
}

int32_t tocsin_engine_stats(tocsin_engine* engine, char* buffer, size_t size, size_t* length) {
  return with(engine, [&](embedded::LocalJudge& judge) {
    const embedded::JudgeCounts counts = judge.counts();
    const core::ValueMap out{{"records", counts.records},
                             {"refused", counts.refused},
                             {"dropped", counts.dropped},
                             {"waiting", counts.waiting},
                             {"issues", counts.issues},
                             {"issues_left_out", counts.issues_left_out},
                             {"stops", counts.stops},
                             {"seconds", static_cast<double>(counts.cost.count()) * 1e-9},
                             {"rules", std::uint64_t{counts.rules}},
                             {"without_receivers", counts.without_receivers},
                             {"error", counts.error}};
    return copy_out(core::to_json(out), buffer, size, length);
  });
}

int64_t tocsin_engine_cost(tocsin_engine* engine) {
  return engine == nullptr ? 0 : engine->judge->cost().count();
}

int32_t tocsin_engine_finish(tocsin_engine* engine, uint32_t ms) {
  return with(engine, [&](embedded::LocalJudge& judge) -> std::int32_t {
    return judge.finish(milliseconds(ms)) ? TOCSIN_ENGINE_OK : TOCSIN_ENGINE_TIMEOUT;
  });
}

int32_t tocsin_engine_close(tocsin_engine* engine) {
  const std::int32_t result = with(engine, [](embedded::LocalJudge& judge) -> std::int32_t {
    judge.close();
    return TOCSIN_ENGINE_OK;
  });
  delete engine;
  return result;
}

}  // extern "C"
