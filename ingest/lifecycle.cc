#include "ingest/lifecycle.h"

#include <array>
#include <utility>

#include "core/frame.h"
#include "ingest/json_support.h"

namespace tocsin::ingest {
namespace {

using core::Lifecycle;
using core::LifecycleEvent;

constexpr std::array<std::pair<LifecycleEvent, std::string_view>, 8> kEvents{{
    {LifecycleEvent::start, "start"},
    {LifecycleEvent::heartbeat, "heartbeat"},
    {LifecycleEvent::preflight, "preflight"},
    {LifecycleEvent::died, "died"},
    {LifecycleEvent::applied, "applied"},
    {LifecycleEvent::gap, "gap"},
    {LifecycleEvent::leave, "leave"},
    {LifecycleEvent::end, "end"},
}};

void put(Json& out, const char* name, const std::string& text) {
  if (!text.empty()) out[name] = text;
}
template <typename T>
void put(Json& out, const char* name, const std::optional<T>& number) {
  if (number) out[name] = *number;
}
void put(Json& out, const char* name, const core::Value& value) {
  if (!value.is_null()) out[name] = value_json(value);
}

void put_start(Json& out, const Lifecycle& from) {
  put(out, "job", from.job);
  out["labels"] = labels_json(from.labels);
  put(out, "framework", from.framework);
  put(out, "version", from.version);
  put(out, "pid", from.pid);
  put(out, "pid_start", from.pid_start);
  put(out, "boot_id", from.boot_id);
  put(out, "opened", from.opened);
  put(out, "host", from.host);
  put(out, "node", from.node);
  put(out, "launcher", from.launcher);
  put(out, "launch", from.launch);
  put(out, "worker", from.worker_name);
  Json platform = Json::object();
  platform["kind"] = from.platform;
  put(platform, "ref", from.platform_ref);
  out["platform"] = std::move(platform);
  out["continues_from"] = from.continues_from ? Json(*from.continues_from) : Json(nullptr);
  put(out, "capture", from.capture);
}

void put_gap(Json& out, const Lifecycle& from) {
  put(out, "lane", from.lane);
  put(out, "reason", from.reason);
  out["frames"] = from.frames;
  out["rows"] = from.rows;
  put(out, "first_step", from.first_step);
  put(out, "last_step", from.last_step);
}

void put_end(Json& out, const Lifecycle& from) {
  put(out, "outcome", from.outcome);
  put(out, "exit_code", from.exit_code);
  put(out, "error", from.error);
}

}  // namespace

std::string encode_lifecycle(const Lifecycle& from) {
  Json out = Json::object();
  for (const auto& [event, name] : kEvents) {
    if (event == from.event) out["event"] = name;
  }
  switch (from.event) {
    case LifecycleEvent::start:
      put_start(out, from);
      break;
    case LifecycleEvent::heartbeat:
      put(out, "launch", from.launch);
      break;
    case LifecycleEvent::preflight:
      put(out, "findings", from.findings);
      break;
    case LifecycleEvent::died:
      put(out, "worker", from.died_worker);
      out["incarnation"] = from.died_incarnation;
      put(out, "pid", from.pid);
      out["exit_code"] = from.exit_code ? Json(*from.exit_code) : Json(nullptr);
      out["signal"] = from.signal ? Json(*from.signal) : Json(nullptr);
      break;
    case LifecycleEvent::applied:
      put(out, "command_id", from.command_id);
      put(out, "version", from.version);
      put(out, "effective_step", from.effective_step);
      put(out, "left_out", from.left_out);
      break;
    case LifecycleEvent::gap:
      put_gap(out, from);
      break;
    case LifecycleEvent::leave:
      put(out, "reason", from.reason);
      break;
    case LifecycleEvent::end:
      put_end(out, from);
      break;
  }
  put(out, "step", from.step);
  return dump(out);
}

core::Result<Lifecycle> parse_lifecycle(std::string_view json) {
  const core::Result<Json> parsed = parse_json(json, core::kMaxFrameBytes);
  if (!parsed) return parsed.error().in("lifecycle");
  std::string error;
  const Fields in(*parsed, "", error);
  Lifecycle out;
  std::string event;
  in.text("event", event);
  bool known = false;
  for (const auto& [code, name] : kEvents) {
    if (name != event) continue;
    out.event = code;
    known = true;
  }
  if (!known) in.wrong("event", "start, heartbeat, preflight, died, applied, gap, leave or end");
  in.text("job", out.job);
  in.labels("labels", out.labels);
  in.text("framework", out.framework);
  in.text("version", out.version);
  in.integer("pid", out.pid);
  in.integer("pid_start", out.pid_start);
  in.text("boot_id", out.boot_id);
  in.integer("opened", out.opened);
  in.text("host", out.host);
  in.text("node", out.node);
  in.text("launcher", out.launcher);
  in.text("launch", out.launch);
  in.value("findings", out.findings);
  if (out.event == LifecycleEvent::died) {
    in.text("worker", out.died_worker);
    in.integer("incarnation", out.died_incarnation);
  } else {
    in.text("worker", out.worker_name);
  }
  in.integer("signal", out.signal);
  in.object("platform", [&](const Fields& platform) {
    platform.text("kind", out.platform);
    platform.value("ref", out.platform_ref);
  });
  in.integer("continues_from", out.continues_from);
  in.value("capture", out.capture);
  in.integer("step", out.step);
  in.text("command_id", out.command_id);
  in.integer("effective_step", out.effective_step);
  in.value("left_out", out.left_out);
  in.text("lane", out.lane);
  in.text("reason", out.reason);
  in.integer("frames", out.frames);
  in.integer("rows", out.rows);
  in.integer("first_step", out.first_step);
  in.integer("last_step", out.last_step);
  in.text("outcome", out.outcome);
  in.integer("exit_code", out.exit_code);
  in.text("error", out.error);
  if (!error.empty()) return core::invalid_argument("lifecycle: " + error);
  return out;
}

}  // namespace tocsin::ingest
