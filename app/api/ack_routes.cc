#include "app/api/ack_routes.h"

#include <set>
#include <utility>

#include "app/api/ack_desk.h"
#include "app/api/page.h"
#include "app/serve/problem.h"
#include "app/view/ack_words.h"
#include "core/json.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;
using routing::Acknowledgement;

constexpr std::size_t kMostOfAnAckRequest = 64 * 1024;
constexpr core::Duration kLongestAck = std::chrono::hours(24 * 366);

ValueMap ack_row(const Acknowledgement& ack, bool holds) {
  const auto named = [](const std::string& text) { return text.empty() ? Value() : Value(text); };
  ValueList issues;
  for (const std::string& key : ack.issues) issues.emplace_back(key);
  return {{"id", ack.id},
          {"issues", std::move(issues)},
          {"group", named(ack.group)},
          {"run", named(ack.run)},
          {"by", ack.by},
          {"note", ack.note},
          {"at", core::to_rfc3339(ack.at)},
          {"until", ack.until ? Value(core::to_rfc3339(*ack.until)) : Value()},
          {"origin", ack.origin},
          {"holds", holds}};
}

HttpAnswer list_acks(ApiDesk& desk, const ApiCall& call) {
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  const core::WallTime now = desk.clock.now();
  const auto seen = desk.view.read([&](const TopicView& view) {
    std::set<std::string> holding;
    for (const auto& [key, issue] : view.issues()) {
      for (std::string& id : acks_of(view, key, issue, now)) holding.insert(std::move(id));
    }
    for (const auto& [id, ack] : view.acknowledgements())
      page->add({ack.at, id}, ack_row(ack, holding.contains(id)));
  });
  if (!seen) return problem(seen.error());
  return std::move(*page).answer(call.request, {{"as_of", core::to_rfc3339(now)}});
}

// The text of a member; `needed`: it must be there.
core::Status take_text(const Value& body, const char* name, bool needed, std::string& out) {
  const Value* given = core::find(body, name);
  const auto* text = given == nullptr ? nullptr : core::as<std::string>(given);
  if (text != nullptr) out = *text;
  const bool absent = given == nullptr || given->is_null();
  if (needed ? out.empty() : (!absent && text == nullptr))
    return core::invalid_argument(std::string(name) + ": expected a text");
  return core::ok();
}

core::Status take_end(const Value& body, core::WallTime now, AckWish& out) {
  std::string until;
  std::string duration;
  if (const auto read = take_text(body, "until", false, until); !read) return read;
  if (const auto read = take_text(body, "duration", false, duration); !read) return read;
  if (!until.empty() && !duration.empty())
    return core::invalid_argument("expected one of until and duration");
  if (!until.empty()) {
    out.until = core::parse_rfc3339(until);
    if (out.until && *out.until > now) return core::ok();
    return core::invalid_argument("until: expected a time to come, such as 2026-01-02T03:04:05Z");
  }
  if (duration.empty()) return core::ok();
  const auto lasts = core::parse_duration(duration);
  if (!lasts || *lasts <= core::Duration{} || *lasts > kLongestAck)
    return core::invalid_argument("duration: expected a duration such as 2h, at most 366d");
  out.until = now + *lasts;
  return core::ok();
}

core::Result<AckWish> read_ack_request(std::string_view json, core::WallTime now) {
  static const std::vector<std::string> kNames{"what", "job", "note", "until", "duration"};
  const auto body = core::parse_json(json, kMostOfAnAckRequest);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  for (const auto& [name, value] : *members) {
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) continue;
    const std::string near = core::nearest(name, kNames);
    return core::invalid_argument("unknown field \"" + core::visible(name, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  AckWish out;
  if (const auto read = take_text(*body, "what", true, out.what); !read) return read.error();
  if (const auto read = take_text(*body, "note", true, out.note); !read) return read.error();
  if (const auto read = take_text(*body, "job", false, out.job); !read) return read.error();
  if (const auto read = take_end(*body, now, out); !read) return read.error();
  return out;
}

HttpAnswer post_ack(ApiDesk& desk, const ApiCall& call) {
  const auto wish = read_ack_request(call.request.body, desk.clock.now());
  if (!wish) return problem(wish.error());
  const auto taken = take_on(desk, *wish, call);
  if (!taken) return problem(taken.error());
  ValueList open;
  for (const std::string& key : taken->open) open.emplace_back(key);
  return {202, core::to_json(
                   ValueMap{{"ack", ack_row(taken->ack, true)}, {"matching", std::move(open)}}) +
                   "\n"};
}

HttpAnswer delete_ack(ApiDesk& desk, const ApiCall& call) {
  const auto ended = take_back(desk, call.request.in_path.find("id")->second, call);
  return ended ? HttpAnswer{204, ""} : problem(ended.error());
}

}  // namespace

std::vector<ApiRoute> ack_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  ApiParameter id{"id", ParameterType::text, "of the acknowledgement: ack_…"};
  id.in_path = true;
  return {
      {"GET",
       "/api/v1/acks",
       ApiRole::viewer,
       "List acknowledgements, those that are over too",
       of_desk(list_acks),
       page_parameters(),
       {},
       {{200, "newest first", "Acknowledgements"}}},
      {"POST",
       "/api/v1/acks",
       ApiRole::operate,
       "Acknowledge an issue, a run, or what a message told",
       of_desk(post_ack),
       {},
       {{"AckRequest"}},
       {{202, "it holds", "AckDetails"}}},
      {"DELETE",
       "/api/v1/acks/{id}",
       ApiRole::operate,
       "Take an acknowledgement back",
       of_desk(delete_ack),
       {id},
       {},
       {{204, "it is taken back"}}},
  };
}

}  // namespace tocsin::app
