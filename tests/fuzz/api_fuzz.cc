// Bodies, queries and headers that the HTTP API is sent: never crash; an alert that is taken becomes an
// event that is read again, a silence has matchers that are read again, nobody gets in without a token.
// The first byte chooses the reader.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/actions.h"
#include "app/api/alertmanager_json.h"
#include "app/api/inbound_event.h"
#include "app/api/page.h"
#include "app/api/silence_request.h"
#include "app/api/slack_click.h"
#include "app/api/slack_reply.h"
#include "app/api/stream_routes.h"
#include "app/replay/rule_text.h"
#include "app/serve/access.h"
#include "app/serve/byte_range.h"
#include "app/serve/gzip.h"
#include "app/serve/url_query.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "ingest/ingest.h"

namespace {

constexpr std::size_t kMostBytes = 1 << 16;

void sound(bool holds) {
  if (!holds) std::abort();
}

void one_alert(std::string_view text) {
  const auto alert = tocsin::core::parse_json(text, kMostBytes);
  if (!alert) return;
  const auto now = tocsin::core::wall_time(1'767'323'045'000'000'000);
  const auto event = tocsin::app::event_of_alert(*alert, std::chrono::minutes(5), now);
  if (!event) return sound(!event.error().message.empty());
  // A limit may still refuse it, with a sentence.
  const auto read = tocsin::ingest::decode_structured_event(tocsin::core::to_json(*event));
  sound(read.has_value() || !read.error().message.empty());
}

void one_silence(std::string_view text) {
  const auto asked = tocsin::app::read_asked_silence(text);
  if (!asked) return sound(!asked.error().message.empty());
  sound(tocsin::routing::Matchers::parse(asked->silence.matchers).has_value());
}

void one_query(std::string_view text) {
  const auto query = tocsin::app::UrlQuery::parse(text);
  if (!query) return;
  const auto filter = tocsin::app::AlertFilter::parse(*query);
  sound(filter.has_value() || !filter.error().message.empty());
  const auto stream = tocsin::app::read_stream_filter(*query);
  sound(stream.has_value() || !stream.error().message.empty());
  auto page = tocsin::app::ListPage::of(*query);
  if (!page) return sound(!page.error().message.empty());
  page->add({tocsin::core::wall_time(7), "a"}, 1);
  page->add({tocsin::core::wall_time(8), "b"}, 2);
  const tocsin::app::HttpRequest request{"GET", "/api/v1/issues", text, "", "127.0.0.1"};
  for (const auto& [name, value] : std::move(*page).answer(request).headers)
    sound(value.find_first_of("\r\n") == std::string::npos);
}

void one_silence_of_ours(std::string_view text) {
  const auto now = tocsin::core::wall_time(1'767'323'045'000'000'000);
  const auto asked = tocsin::app::read_silence_request(text, now);
  if (!asked) return sound(!asked.error().message.empty());
  sound(tocsin::routing::Matchers::parse(asked->silence.matchers).has_value());
}

// Lines `name: value`. No token and no cookie that these bytes hold is one of ours.
void headers_of_a_request(std::string_view text) {
  using namespace tocsin::app;
  static const tocsin::core::SystemClock clock;
  static const SessionTable sessions(clock);
  static const Access access = [] {
    AccessConfig config;
    config.tokens = {
        {"shift", ApiRole::operate, tocsin::config::Secret::from_value("fuzz \x01\x02 unguessed")}};
    ProxyAccess proxy;
    proxy.trusted = {"127.0.0.0/8"};
    proxy.secret = tocsin::config::Secret::from_value("fuzz \x03\x04 unguessed");
    proxy.roles = {{"leads", ApiRole::admin}};
    config.proxy = proxy;
    return Access(config, "127.0.0.1:9760", "https://alarms.example", &sessions);
  }();
  HttpRequest request{"POST", "/api/v1/silences", "", "{}", "127.0.0.1"};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = std::min(line.find(": "), line.size());
    request.headers.emplace_back(line.substr(0, colon),
                                 line.substr(std::min(colon + 2, line.size())));
  }
  const auto verdict = access.check(request, ApiRole::viewer);
  sound(verdict.refusal.has_value());
  sound(verdict.refusal->status == 401 || verdict.refusal->status == 403 ||
        verdict.refusal->status == 415 || verdict.refusal->status == 421);
  takes_gzip(request.header("accept-encoding"));
  Access::cookie_of(request);
}

// Bodies and signatures of tools: read whole, or refused.
void one_hook(std::string_view text) {
  for (const auto& read :
       {tocsin::app::read_pagerduty_hook(text), tocsin::app::read_jsm_hook(text)}) {
    if (!read || read->kind == tocsin::app::InboundEvent::Kind::other) continue;
    sound(read->group.empty() || read->group.size() == 64);
    sound(read->by.size() <= 1000);
  }
  const std::size_t end = std::min(text.find('\n'), text.size());
  sound(
      !tocsin::app::has_pagerduty_signature(text.substr(0, end), "fuzz \x05\x06 unguessed", text));
}

// A click, and what is posted for it: as a form, and as the JSON in it.
void one_click(std::string_view text) {
  using namespace tocsin;
  std::string form = "payload=";
  for (const char c : text) {
    static constexpr std::string_view kHex = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    form += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
  }
  for (const std::string_view body : {text, std::string_view(form)}) {
    const auto click = app::read_slack_click(body);
    if (!click || !*click) continue;
    sound(app::slack_person(**click).size() < 200);
    sound((*click)->value.size() <= 2000);
    const std::string changed = app::slack_changed_message(**click, "done <!channel>");
    sound(changed.empty() || core::parse_json(changed, std::size_t{8} << 20).has_value());
  }
  sound(!app::has_slack_signature(text, text, "fuzz \x07\x08 unguessed", text));
  app::slack_timestamp(text);
}

// What stands in a button's value, and in a link: one text for one target.
void one_target(std::string_view text) {
  const auto target = tocsin::actions::AnswerTarget::parse(text);
  if (target) sound(target->text() == text);
}

// Rules that somebody sends as a text: some, or each problem with a place in the text.
void one_rule_text(std::string_view text) {
  const auto read = tocsin::app::read_rule_text(text);
  sound(!read.problems.empty() || !read.rules.rules.empty());
  const auto lines =
      1 + std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; });
  for (const auto& one : read.problems) sound(!one.message.empty() && one.line <= lines + 1);
}

// A range lies within what there is.
void one_range(std::string_view text) {
  for (const std::uint64_t size : {0ULL, 1ULL, 1000ULL, ~0ULL}) {
    tocsin::app::ByteRange range;
    const auto asked = tocsin::app::asked_range(text, size, range);
    if (asked == tocsin::app::RangeAsked::beyond) continue;
    sound(range.begin <= range.end && range.end <= size);
    sound(asked == tocsin::app::RangeAsked::whole || range.begin < range.end);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 10 == 0) one_alert(text);
  if (data[0] % 10 == 1) one_silence(text);
  if (data[0] % 10 == 2) one_query(text);
  if (data[0] % 10 == 3) one_silence_of_ours(text);
  if (data[0] % 10 == 4) headers_of_a_request(text);
  if (data[0] % 10 == 5) one_hook(text);
  if (data[0] % 10 == 6) one_click(text);
  if (data[0] % 10 == 7) one_target(text);
  if (data[0] % 10 == 8) one_rule_text(text);
  if (data[0] % 10 == 9) one_range(text);
  return 0;
}
