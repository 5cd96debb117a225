// Bodies and queries that the HTTP API is sent: never crash; an alert that is taken becomes an event
// that is read again, a silence has matchers that are read again. The first byte chooses the reader.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app/api/alertmanager_json.h"
#include "app/serve/url_query.h"
#include "core/json.h"
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
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0) one_alert(text);
  if (data[0] % 3 == 1) one_silence(text);
  if (data[0] % 3 == 2) one_query(text);
  return 0;
}
