#include "app/api/pin_routes.h"

#include <chrono>
#include <memory>
#include <utility>

#include "app/serve/problem.h"
#include "core/fields/run_pin.h"
#include "core/json.h"
#include "core/mutex.h"
#include "core/text.h"
#include "core/visible_text.h"
#include "insights/store/feedback_reader.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Value;
using core::ValueMap;

constexpr std::size_t kMostOfAPinRequest = 4096;
constexpr auto kPinReadBack = 5s;  // until the store has what was written
constexpr auto kLookForPinEvery = 20ms;

Value pin_value(const std::optional<core::RunPin>& pin) {
  if (!pin) return {};
  return ValueMap{{"by", pin->by}, {"at", core::to_rfc3339(pin->at)}, {"origin", pin->origin}};
}

// {"pinned": true or false}
core::Result<bool> read_wish(std::string_view json) {
  const auto body = core::parse_json(json, kMostOfAPinRequest);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  for (const auto& member : *members) {
    if (member.first == "pinned") continue;
    const std::string near = core::nearest(member.first, {"pinned"});
    return core::invalid_argument("unknown field \"" + core::visible(member.first, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  const Value* given = core::find(*body, "pinned");
  const bool* pinned = given == nullptr ? nullptr : core::as<bool>(given);
  if (pinned == nullptr) return core::invalid_argument("pinned: expected true or false");
  return *pinned;
}

core::Result<insights::RunLine> pinned_line(ApiDesk& desk, const std::string& asked) {
  auto store = desk.insights.reader();
  if (!store) return store.error();
  auto line = (*store)->run(asked);
  if (const auto failed = (*store)->failure(); !failed) return failed.error();
  if (line) return std::move(*line);
  return core::Error{
      core::Code::not_found,
      "no run, or more than one, has a uid that begins with \"" + core::visible(asked, 100) + "\""};
}

core::Status write_pin(ApiDesk& desk, const std::string& store, const ApiCall& call,
                       const std::optional<core::RunPin>& before,
                       const std::optional<core::RunPin>& after, const std::string& run) {
  core::OutRecord record = after ? core::pin_record(*after) : core::pin_tombstone(run);
  const std::string key = record.key;
  const auto value = record.value;
  const char* what = after ? "pin.set" : "pin.taken_back";
  std::vector<core::OutRecord> records{
      audit_of(call, desk.clock.now(), what, key, pin_value(before), pin_value(after))};
  records.push_back(std::move(record));
  if (auto sent = desk.writer.write(records); !sent) return sent;
  desk.log.info(
      std::string("api_") + what,
      {{"run", run}, {"by", call.who.name}, {"client", std::string(call.request.client)}});
  core::Mutex quiet;
  core::CondVar never;
  for (auto waited = 0ms; waited < kPinReadBack; waited += kLookForPinEvery) {
    auto reader = insights::FeedbackReader::open(store);
    if (!reader) return reader.error();
    if ((*reader)->record(key) == value) return core::ok();
    const core::MutexLock lock(quiet);
    never.wait_for(quiet, kLookForPinEvery, [] { return false; });
  }
  return core::unavailable("it was written, and is not shown yet; ask again in a moment");
}

HttpAnswer put_pin(ApiDesk& desk, const std::string& store, const ApiCall& call) {
  const auto wished = read_wish(call.request.body);
  if (!wished) return problem(wished.error());
  const auto line = pinned_line(desk, call.request.in_path.find("run")->second);
  if (!line) return problem(line.error());
  std::optional<core::RunPin> after = line->pin;
  if (*wished != after.has_value()) {  // else it stands as it is wished, by whoever said so
    after.reset();
    if (*wished) after = core::RunPin{line->uid, call.who.name, desk.clock.now(), "api"};
    if (after) {
      if (const auto good = core::read_run_pin(core::pin_json(*after)); !good)
        return problem(good.error());
    }
    if (const auto done = write_pin(desk, store, call, line->pin, after, line->uid); !done)
      return problem(done.error());
  }
  return {200, core::to_json(ValueMap{{"uid", line->uid}, {"pin", pin_value(after)}}) + "\n"};
}

constexpr std::string_view kPinSchemas =
    R"json({"PinRequest":{"type":"object","properties":{"pinned":{"type":"boolean",
   "description":"true: the run is kept; false: no longer than others"}},"required":["pinned"],
   "additionalProperties":false},
 "Pin":{"type":"object","properties":{"by":{"type":"string"},"at":{"type":"string",
   "format":"date-time"},"origin":{"type":"string"}},"required":["by","at","origin"],
   "additionalProperties":false},
 "PinDetails":{"type":"object","properties":{"uid":{"type":"string","format":"uuid"},
   "pin":{"nullable":true,"allOf":[{"$ref":"#/components/schemas/Pin"}]}},
   "required":["uid","pin"],"additionalProperties":false}})json";

}  // namespace

std::string_view pin_schemas() noexcept { return kPinSchemas; }

std::vector<ApiRoute> pin_routes(ApiDesk& desk, const std::string& store) {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  return {{"PUT",
           "/api/v1/runs/{run}/pin",
           ApiRole::operate,
           "Pin a run, so that it is kept, or take the pin away",
           [&desk, store](const ApiCall& call) { return put_pin(desk, store, call); },
           {run},
           {{"PinRequest"}},
           {{200, "it stands so", "PinDetails"}}}};
}

}  // namespace tocsin::app
