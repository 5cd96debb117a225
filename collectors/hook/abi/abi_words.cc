// The C interface, second half: what goes in and out as text, and how a client ends.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "collectors/hook/abi/abi_guard.h"
#include "collectors/hook/abi/at_exit.h"
#include "collectors/hook/identity/bounded_json.h"
#include "core/fields/command.h"
#include "core/fields/json_in.h"
#include "core/mutex.h"

namespace hook = tocsin::hook;
namespace core = tocsin::core;
using Json = nlohmann::json;

namespace {

using hook::after_fork_in_child;
using hook::fail;
using hook::guarded;
using hook::process;
using hook::text;
using hook::with;

std::int32_t copy_out(const std::string& value, char* buffer, std::size_t size,
                      std::size_t* length) {
  if (length != nullptr) *length = value.size();
  if (buffer == nullptr || value.size() + 1 > size) {
    return fail(TOCSIN_TOO_SMALL,
                "buffer too small: " + std::to_string(value.size() + 1) + " bytes");
  }
  std::memcpy(buffer, value.c_str(), value.size() + 1);
  return TOCSIN_OK;
}

// For calls of threads that live beside the one that closes: null once the handle is closed, which
// is not looked into.
std::shared_ptr<hook::Client> client_of(const tocsin_client* handle) {
  const core::MutexLock lock(process().mutex);
  return handle != nullptr && process().open == handle ? handle->client : nullptr;
}

// Where a process stands: its threads, each with the places on its stack.
core::Value threads_of(const Json& given) {
  constexpr std::size_t kMaxThreads = 64;
  constexpr std::size_t kMaxFrames = 64;
  core::ValueList out;
  for (const Json& thread : given) {
    if (out.size() == kMaxThreads) break;
    core::ValueList frames;
    for (const Json& frame : thread.value("frames", Json::array())) {
      if (frames.size() < kMaxFrames) frames.emplace_back(frame.get<std::string>());
    }
    out.emplace_back(
        core::ValueMap{{"name", thread.value("name", "")}, {"frames", std::move(frames)}});
  }
  return out;
}

core::Value findings_of(const Json& given) {
  constexpr std::size_t kMaxNames = 20;
  core::ValueList out;
  for (const Json& finding : given) {
    core::ValueList names;
    for (const Json& name : finding.value("names", Json::array())) {
      if (names.size() < kMaxNames) names.emplace_back(name.get<std::string>());
    }
    core::ValueMap one{{"kind", finding.value("kind", "")},
                       {"model", finding.value("model", "")},
                       {"count", finding.value("count", std::int64_t{0})},
                       {"names", std::move(names)}};
    if (finding.contains("threads")) one.emplace_back("threads", threads_of(finding["threads"]));
    for (const char* key : {"collectives", "asked_by", "command_id", "title", "text", "level"}) {
      if (finding.contains(key)) one.emplace_back(key, finding[key].get<std::string>());
    }
    out.emplace_back(std::move(one));
  }
  return out;
}

}  // namespace

extern "C" {

int32_t tocsin_command(tocsin_client* handle, const char* slot, char* buffer, size_t size,
                       size_t* length) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (slot == nullptr) {
      return copy_out(Json(self.commands().unseen()).dump(), buffer, size, length);
    }
    const auto command = self.commands().read(slot);
    return command ? copy_out(*command, buffer, size, length) : TOCSIN_NOT_FOUND;
  });
}

int32_t tocsin_ack(tocsin_client* handle, const char* json, size_t length) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    core::Ack ack;
    ack.action = "stop";
    if (const auto read = core::read_json({json, length}, hook::kMaxGivenJson, ack); !read) {
      return fail(TOCSIN_INVALID, "tocsin_ack: " + read.error().message);
    }
    ack.revision = self.commands().revision_of(ack.action, ack.command_id);
    if (ack.phase == "stopping") self.stopping();
    self.session().ack(std::move(ack));
    return TOCSIN_OK;
  });
}

int32_t tocsin_lifecycle(tocsin_client* handle, const char* json, size_t length) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    const Json given = hook::parse_given({json, length});
    const std::string event = given.is_object() ? given.value("event", "") : "";
    if (event == "leave") {
      self.session().leave(given.value("reason", ""));
      return TOCSIN_OK;
    }
    if (event == "preflight") {
      self.session().preflight(findings_of(given.value("findings", Json::array())));
      return TOCSIN_OK;
    }
    if (event == "heartbeat") {
      const double seconds = given.value("expect_next_in", 0.0);
      if (!(seconds >= 0)) return fail(TOCSIN_INVALID, "tocsin_lifecycle: expect_next_in < 0");
      self.session().progress(seconds);
      return TOCSIN_OK;
    }
    if (event != "start") {
      return fail(TOCSIN_INVALID, "tocsin_lifecycle: event start, heartbeat, leave or preflight");
    }
    const Json steps = given.value("steps", Json::object());
    std::array<std::int64_t, 4> counts{};
    for (std::size_t mode = 0; mode < counts.size(); ++mode) {
      counts[mode] =
          steps.value(std::string(core::to_string(static_cast<core::Mode>(mode))), std::int64_t{0});
    }
    std::optional<std::int64_t> continues_from;
    if (given.contains("continues_from")) {
      continues_from = given["continues_from"].get<std::int64_t>();
    }
    self.session().resume(counts, given.value("global_step", std::int64_t{0}), continues_from);
    return TOCSIN_OK;
  });
}

int32_t tocsin_counters(tocsin_client* handle, char* buffer, size_t size, size_t* length) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    return copy_out(self.counters(), buffer, size, length);
  });
}

int32_t tocsin_collections(tocsin_client* handle, char* buffer, size_t size, size_t* length) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    return copy_out(core::to_json(self.session().collections()), buffer, size, length);
  });
}

int32_t tocsin_define(tocsin_client* handle, const char* collections, size_t length) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (collections == nullptr || length > hook::kMaxGivenJson) {
      return fail(TOCSIN_INVALID, "tocsin_define: collections, as text");
    }
    const auto parsed =
        hook::parse_capture("{collections: " + std::string(collections, length) + "}");
    if (!parsed) return fail(TOCSIN_INVALID, parsed.error().message);
    auto defined = self.session().define(parsed->collections);
    return defined ? TOCSIN_OK : fail(TOCSIN_INVALID, defined.error().message);
  });
}

int32_t tocsin_issues(tocsin_client* handle, uint64_t since, char* buffer, size_t size,
                      size_t* length) {
  if (handle == nullptr) {
    return guarded([&]() -> std::int32_t {
      const core::MutexLock lock(process().mutex);
      if (process().last_issues.empty()) return TOCSIN_NOT_FOUND;
      Json all = Json::parse(process().last_issues, nullptr, false);
      const std::size_t skip = std::min<std::size_t>(static_cast<std::size_t>(since), all.size());
      all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(skip));
      return copy_out(all.dump(), buffer, size, length);
    });
  }
  return guarded([&]() -> std::int32_t {
    const std::shared_ptr<hook::Client> held = client_of(handle);
    if (held == nullptr) return TOCSIN_CLOSED;
    return held->judge() == nullptr ? TOCSIN_NOT_FOUND
                                    : copy_out(held->judge()->issues(since), buffer, size, length);
  });
}

int32_t tocsin_wait_issues(tocsin_client* handle, uint64_t seen, uint32_t milliseconds) {
  return guarded([&]() -> std::int32_t {
    const std::shared_ptr<hook::Client> held = client_of(handle);
    if (held == nullptr) return TOCSIN_CLOSED;
    if (held->judge() == nullptr) return TOCSIN_NOT_FOUND;
    return held->judge()->wait(seen, std::chrono::milliseconds(milliseconds)) ? TOCSIN_OK
                                                                              : TOCSIN_TIMEOUT;
  });
}

int32_t tocsin_wake(tocsin_client* handle) {
  return with(handle, [](hook::Client& self) -> std::int32_t {
    if (self.judge() == nullptr) return TOCSIN_NOT_FOUND;
    self.judge()->wake();
    return TOCSIN_OK;
  });
}

int32_t tocsin_flush(tocsin_client* handle, uint32_t milliseconds) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    const bool delivered = self.flush(std::chrono::milliseconds(milliseconds));
    const bool judged =
        self.judge() == nullptr || self.judge()->catch_up(std::chrono::milliseconds(milliseconds));
    return delivered && judged ? TOCSIN_OK : TOCSIN_TIMEOUT;
  });
}

int32_t tocsin_close(tocsin_client* handle, const char* outcome, uint32_t milliseconds) {
  return with(handle, [&](hook::Client&) -> std::int32_t {
    {
      const core::MutexLock lock(process().mutex);
      if (process().open != handle) return fail(TOCSIN_CLOSED, "closed already");
    }
    return hook::close_open_client(hook::ending_of(text(outcome)),
                                   std::chrono::milliseconds(milliseconds))
               ? TOCSIN_OK
               : TOCSIN_TIMEOUT;
  });
}

int32_t tocsin_close_at_exit(tocsin_client* handle, const char* outcome, uint32_t milliseconds) {
  return with(handle, [&](hook::Client&) -> std::int32_t {
    const std::chrono::milliseconds timeout(milliseconds);
    if (hook::close_at_exit(hook::ending_of(text(outcome)), timeout)) return TOCSIN_OK;
    // Nobody will ever say how this process ended.
    return hook::close_open_client({"unknown", "", std::nullopt, 0}, timeout) ? TOCSIN_OK
                                                                              : TOCSIN_TIMEOUT;
  });
}

int32_t tocsin_closed(char* buffer, size_t size, size_t* length) {
  return guarded([&]() -> std::int32_t {
    const core::MutexLock lock(process().mutex);
    if (process().last_counters.empty()) return TOCSIN_NOT_FOUND;
    Json out = Json::parse(process().last_counters, nullptr, false);
    out["loss"] = process().loss;
    return copy_out(out.dump(), buffer, size, length);
  });
}

int32_t tocsin_after_fork(tocsin_client* handle) {
  // fork() has run our handler; a child that was made around it is helped here.
  if (hook::is_ours(handle) && handle->pid != getpid()) after_fork_in_child();
  return TOCSIN_OK;
}

}  // extern "C"
