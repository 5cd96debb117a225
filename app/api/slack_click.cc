#include "app/api/slack_click.h"

#include <array>
#include <charconv>

#include "actions/actions.h"
#include "app/serve/session_table.h"
#include "app/serve/url_query.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;

constexpr std::size_t kLongestSlackId = 40;
constexpr std::size_t kLongestSlackName = 80;
constexpr std::size_t kLongestClickValue = 2000;
constexpr std::size_t kLongestSlackUrl = 2000;

const Value kNothing;

const Value& at(const Value& of, const char* name) {
  const Value* found = core::find(of, name);
  return found == nullptr ? kNothing : *found;
}

bool is_slack_id(const std::string& text) {
  return !text.empty() && text.size() <= kLongestSlackId &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string::npos;
}

// An app of a whole organisation has no workspace of its own: then everybody of it is ours.
bool is_of_our_workspace(const Value& payload) {
  const std::string team = core::text_at(at(payload, "team"), "id");
  const std::string of_user = core::text_at(at(payload, "user"), "team_id");
  return team.empty() || of_user.empty() || team == of_user;
}

/// Our button among what was pressed; empty: none is.
std::string pressed(const Value& payload) {
  const auto* actions = core::as<core::ValueList>(core::find(payload, "actions"));
  if (actions == nullptr) return {};
  for (const Value& action : *actions) {
    if (core::text_at(action, "action_id").starts_with(std::string(actions::kSlackButtons) + "_"))
      return core::text_at(action, "value");
  }
  return {};
}

}  // namespace

bool has_slack_signature(std::string_view header, std::string_view timestamp,
                         std::string_view secret, std::string_view body) {
  std::string text = "v0:";
  text += timestamp;
  text += ":";
  text += body;
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string wanted = "v0=";
  for (const std::uint8_t byte : keyed_hash(secret, text))
    wanted += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  // Hashes are compared, so that the time it takes tells nothing of the signature.
  return core::sha256(header) == core::sha256(wanted);
}

std::optional<core::WallTime> slack_timestamp(std::string_view header) {
  std::int64_t seconds = 0;
  const auto read = std::from_chars(header.data(), header.data() + header.size(), seconds);
  constexpr std::int64_t kLastSecond = 9'000'000'000;
  if (read.ec != std::errc() || read.ptr != header.data() + header.size() || seconds < 0 ||
      seconds > kLastSecond)
    return std::nullopt;
  return core::wall_time(0) + std::chrono::seconds(seconds);
}

core::Result<std::optional<SlackClick>> read_slack_click(std::string_view body) {
  if (body.size() > kMostOfAClick) return core::invalid_argument("more than 512 KiB");
  const auto form = UrlQuery::parse(body);
  if (!form) return form.error();
  const auto payload = form->value("payload");
  if (!payload) return core::invalid_argument("expected a form with payload");
  const auto read = core::parse_json(*payload, kMostOfAClick);
  if (!read) return read.error().in("payload");
  const std::string type = core::text_at(*read, "type");
  if (type.empty()) return core::invalid_argument("payload: expected type");
  const std::string value = type == "block_actions" ? pressed(*read) : std::string();
  if (value.empty()) return std::optional<SlackClick>();
  SlackClick out;
  out.value = value;
  out.user = core::text_at(at(*read, "user"), "id");
  if (!is_slack_id(out.user)) return core::invalid_argument("payload: expected user.id");
  if (value.size() > kLongestClickValue)
    return core::invalid_argument("payload: a value of more than 2000 bytes");
  out.user_name = core::text_at(at(*read, "user"), "username");
  if (out.user_name.empty()) out.user_name = core::text_at(at(*read, "user"), "name");
  out.of_our_workspace = is_of_our_workspace(*read);
  out.response_url = core::text_at(*read, "response_url");
  if (out.response_url.size() > kLongestSlackUrl) out.response_url.clear();
  out.message = at(*read, "message");
  return std::optional<SlackClick>(std::move(out));
}

std::string slack_person(const SlackClick& click) {
  const std::string name = core::visible(click.user_name, kLongestSlackName);
  return "slack:" + (name.empty() ? click.user : name + " (" + click.user + ")");
}

}  // namespace tocsin::app
