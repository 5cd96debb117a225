#include "app/api/feedback_routes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "app/api/feedback_desk.h"
#include "app/serve/problem.h"
#include "app/view/issue_feedback.h"
#include "core/json.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostOfAFeedbackRequest = 64 * 1024;

struct FeedbackWords {
  std::string first;   // of the needed member
  std::string second;  // of the other; empty: it is not there
};

// An object of the text `first`, and of `second` if that is a name.
core::Result<FeedbackWords> read_words(std::string_view json, const char* first,
                                       const char* second) {
  const auto body = core::parse_json(json, kMostOfAFeedbackRequest);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  std::vector<std::string> names{first};
  if (second != nullptr) names.emplace_back(second);
  FeedbackWords out;
  for (const auto& member : *members) {
    const std::string& name = member.first;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string near = core::nearest(name, names);
      return core::invalid_argument("unknown field \"" + core::visible(name, 100) + "\"" +
                                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    const auto* text = core::as<std::string>(&member.second);
    const bool left_out = member.second.is_null() && name != first;
    if (text == nullptr && !left_out) return core::invalid_argument(name + ": expected a text");
    if (text != nullptr) (name == first ? out.first : out.second) = *text;
  }
  if (out.first.empty()) return core::invalid_argument(std::string(first) + ": expected a text");
  return out;
}

HttpAnswer post_verdict(FeedbackDesk& desk, const ApiCall& call) {
  auto words = read_words(call.request.body, "verdict", "note");
  if (!words) return problem(words.error());
  const auto said = desk.judge(call, std::move(words->first), std::move(words->second));
  if (!said) return problem(said.error());
  return {200, core::to_json(ValueMap{{"verdict", verdict_value(&*said)}}) + "\n"};
}

HttpAnswer delete_verdict(FeedbackDesk& desk, const ApiCall& call) {
  const auto gone = desk.take_back(call);
  return gone ? HttpAnswer{204, ""} : problem(gone.error());
}

HttpAnswer post_note(FeedbackDesk& desk, const ApiCall& call) {
  auto words = read_words(call.request.body, "text", nullptr);
  if (!words) return problem(words.error());
  const auto said = desk.note(call, std::move(words->first));
  if (!said) return problem(said.error());
  return {200, core::to_json(ValueMap{{"note", note_value(*said)}}) + "\n"};
}

HttpAnswer list_tallies(FeedbackDesk& desk, const ApiCall& /*call*/) {
  const auto tallies = desk.rules();
  if (!tallies) return problem(tallies.error());
  ValueList rows;
  for (const insights::RuleTally& one : *tallies) {
    ValueMap row{{"rule", one.rule},
                 {"fired", one.fired},
                 {"useful", one.useful},
                 {"noise", one.noise},
                 {"known", one.known}};
    if (const auto precision = one.precision()) row.emplace_back("precision", *precision);
    rows.push_back(std::move(row));
  }
  return {200, core::to_json(
                   ValueMap{{"items", std::move(rows)}, {"as_of", core::to_rfc3339(desk.now())}}) +
                   "\n"};
}

constexpr std::string_view kFeedbackSchemas =
    R"json({"Verdict":{"type":"object","properties":{"verdict":{"type":"string",
   "enum":["useful","noise","known"]},"by":{"type":"string"},"at":{"type":"string",
   "format":"date-time"},"note":{"type":"string","nullable":true},"origin":{"type":"string"}},
   "required":["verdict","by","at","note","origin"],"additionalProperties":false},
 "VerdictRequest":{"type":"object","properties":{"verdict":{"type":"string",
   "enum":["useful","noise","known"]},"note":{"type":"string","nullable":true,
   "description":"why; at most 4096 bytes"}},"required":["verdict"],"additionalProperties":false},
 "VerdictDetails":{"type":"object","properties":{"verdict":{"$ref":"#/components/schemas/Verdict"}},
   "required":["verdict"],"additionalProperties":false},
 "Note":{"type":"object","properties":{"id":{"type":"string"},"by":{"type":"string"},
   "at":{"type":"string","format":"date-time"},"text":{"type":"string"},
   "origin":{"type":"string"}},"required":["id","by","at","text","origin"],
   "additionalProperties":false},
 "NoteRequest":{"type":"object","properties":{"text":{"type":"string",
   "description":"at most 4096 bytes"}},"required":["text"],"additionalProperties":false},
 "NoteDetails":{"type":"object","properties":{"note":{"$ref":"#/components/schemas/Note"}},
   "required":["note"],"additionalProperties":false},
 "RuleTallies":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
   "properties":{"rule":{"type":"string"},"fired":{"type":"integer",
   "description":"episodes that the store knows"},"useful":{"type":"integer"},
   "noise":{"type":"integer"},"known":{"type":"integer"},"precision":{"type":"number",
   "description":"useful / (useful + noise); absent where nobody has said either"}},
   "required":["rule","fired","useful","noise","known"],"additionalProperties":false}},
   "as_of":{"type":"string","format":"date-time"}},"required":["items","as_of"],
   "additionalProperties":false}})json";

}  // namespace

std::string_view feedback_schemas() noexcept { return kFeedbackSchemas; }

std::vector<ApiRoute> feedback_routes(ApiDesk& desk, const std::string& store) {
  const auto shared = std::make_shared<FeedbackDesk>(desk, store);
  const auto of_desk = [&](auto handler) {
    return [shared, handler](const ApiCall& call) { return handler(*shared, call); };
  };
  ApiParameter key{"key", ParameterType::text, "of the issue"};
  ApiParameter episode{"episode", ParameterType::text, "its number, or `newest`"};
  key.in_path = episode.in_path = true;
  return {
      {"GET",
       "/api/v1/rules",
       ApiRole::viewer,
       "List how often each rule fired, and what people said of it",
       of_desk(list_tallies),
       {},
       {},
       {{200, "by name", "RuleTallies"}}},
      {"POST",
       "/api/v1/issues/{key}/{episode}/verdict",
       ApiRole::operate,
       "Say whether an issue was worth telling: useful, noise or known",
       of_desk(post_verdict),
       {key, episode},
       {{"VerdictRequest"}},
       {{200, "it stands", "VerdictDetails"}}},
      {"DELETE",
       "/api/v1/issues/{key}/{episode}/verdict",
       ApiRole::operate,
       "Take the verdict on an issue back",
       of_desk(delete_verdict),
       {key, episode},
       {},
       {{204, "it is taken back"}}},
      {"POST",
       "/api/v1/issues/{key}/{episode}/notes",
       ApiRole::operate,
       "Write a note on an issue",
       of_desk(post_note),
       {key, episode},
       {{"NoteRequest"}},
       {{200, "it stands", "NoteDetails"}}},
  };
}

}  // namespace tocsin::app
