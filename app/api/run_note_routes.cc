#include "app/api/run_note_routes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "app/serve/problem.h"
#include "core/fields/run_note.h"
#include "core/json.h"
#include "core/mutex.h"
#include "core/text.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "insights/store/feedback_reader.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Value;
using core::ValueMap;

constexpr std::size_t kMostOfARunNoteRequest = std::size_t{32} << 10;
constexpr auto kRunNoteReadBack = 5s;  // until the store has what was written
constexpr auto kLookForRunNoteEvery = 20ms;

Value run_note_value(const core::RunNote& note) {
  return ValueMap{{"id", note.id},
                  {"by", note.by},
                  {"at", core::to_rfc3339(note.at)},
                  {"text", note.text},
                  {"origin", note.origin}};
}

// {"text": "…"}
core::Result<std::string> read_run_note_text(std::string_view json) {
  const auto body = core::parse_json(json, kMostOfARunNoteRequest);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  for (const auto& member : *members) {
    if (member.first == "text") continue;
    const std::string near = core::nearest(member.first, {"text"});
    return core::invalid_argument("unknown field \"" + core::visible(member.first, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  const Value* given = core::find(*body, "text");
  const auto* text = given == nullptr ? nullptr : core::as<std::string>(given);
  if (text == nullptr || text->empty()) return core::invalid_argument("text: expected what to say");
  return *text;
}

// Its uid. not_found: there is none; failed_precondition: it has as many notes as it may have.
core::Result<std::string> run_to_note(ApiDesk& desk, const std::string& asked) {
  auto store = desk.insights.reader();
  if (!store) return store.error();
  const auto line = (*store)->run(asked);
  if (const auto failed = (*store)->failure(); !failed) return failed.error();
  if (!line)
    return core::Error{core::Code::not_found,
                       "no run, or more than one, has a uid that begins with \"" +
                           core::visible(asked, 100) + "\""};
  const auto events = (*store)->events_of(line->uid);
  if (const auto failed = (*store)->failure(); !failed) return failed.error();
  const auto notes = std::count_if(events.begin(), events.end(), [](const auto& kept) {
    return kept.record.topic == core::topic::kRouterControl &&
           kept.record.key.starts_with(core::kRunNotePrefix);
  });
  if (static_cast<std::size_t>(notes) >= core::kMostNotesOfARun)
    return core::Error{core::Code::failed_precondition, "this run has " +
                                                            std::to_string(core::kMostNotesOfARun) +
                                                            " notes, as many as it may have"};
  return line->uid;
}

core::Status write_run_note(ApiDesk& desk, const std::string& store, const ApiCall& call,
                            const core::RunNote& note) {
  core::OutRecord record = core::run_note_record(note);
  const std::string key = record.key;
  const auto value = record.value;
  std::vector<core::OutRecord> records{
      audit_of(call, desk.clock.now(), "run_note.set", key, Value(), run_note_value(note))};
  records.push_back(std::move(record));
  if (auto sent = desk.writer.write(records); !sent) return sent;
  desk.log.info("api_run_note.set",
                {{"run", note.run}, {"by", note.by}, {"client", std::string(call.request.client)}});
  core::Mutex quiet;
  core::CondVar never;
  for (auto waited = 0ms; waited < kRunNoteReadBack; waited += kLookForRunNoteEvery) {
    auto reader = insights::FeedbackReader::open(store);
    if (!reader) return reader.error();
    if ((*reader)->record(key) == value) return core::ok();
    const core::MutexLock lock(quiet);
    never.wait_for(quiet, kLookForRunNoteEvery, [] { return false; });
  }
  return core::unavailable("it was written, and is not shown yet; look again in a moment");
}

HttpAnswer post_run_note(ApiDesk& desk, const std::string& store, const ApiCall& call) {
  auto text = read_run_note_text(call.request.body);
  if (!text) return problem(text.error());
  const auto run = run_to_note(desk, call.request.in_path.find("run")->second);
  if (!run) return problem(run.error());
  core::RunNote note{"", *run, call.who.name, desk.clock.now(), std::move(*text), "api"};
  note.id = core::run_note_id(note);
  if (const auto good = core::read_run_note(core::run_note_json(note)); !good)
    return problem(good.error());
  if (const auto done = write_run_note(desk, store, call, note); !done)
    return problem(done.error());
  return {200, core::to_json(ValueMap{{"note", run_note_value(note)}}) + "\n"};
}

constexpr std::string_view kRunNoteSchemas =
    R"json({"RunNoteRequest":{"type":"object","properties":{"text":{"type":"string",
   "description":"at most 4096 bytes"}},"required":["text"],"additionalProperties":false},
 "RunNoteDetails":{"type":"object","properties":{"note":{"$ref":"#/components/schemas/Note"}},
   "required":["note"],"additionalProperties":false}})json";

}  // namespace

std::string_view run_note_schemas() noexcept { return kRunNoteSchemas; }

std::vector<ApiRoute> run_note_routes(ApiDesk& desk, const std::string& store) {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  return {{"POST",
           "/api/v1/runs/{run}/notes",
           ApiRole::operate,
           "Write a note on a run, which its history shows",
           [&desk, store](const ApiCall& call) { return post_run_note(desk, store, call); },
           {run},
           {{"RunNoteRequest"}},
           {{200, "it was written", "RunNoteDetails"}}}};
}

}  // namespace tocsin::app
