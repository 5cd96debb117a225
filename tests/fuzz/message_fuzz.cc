// Texts from events on their way into mails, topics, headers and JSON: never crash, and never leave
// the place they were put in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "actions/message/headline.h"
#include "actions/message/message.h"
#include "actions/message/rendered.h"
#include "actions/transport/address_guard.h"
#include "actions/transport/http_client.h"
#include "actions/transport/mime.h"
#include "actions/transport/mqtt_client.h"
#include "actions/transport/redact.h"
#include "actions/transport/signature.h"

namespace {

using namespace tocsin::actions;

void require(bool holds) {
  if (!holds) std::abort();
}

void headers(const std::string& text) {
  const std::string header = header_text(text);
  // A line break only where it folds.
  for (auto at = header.find('\n'); at != std::string::npos; at = header.find('\n', at + 1)) {
    require(at > 0 && header[at - 1] == '\r' && at + 1 < header.size() && header[at + 1] == ' ');
  }
  for (std::size_t begin = 0; begin < header.size();) {
    const std::size_t end = std::min(header.find("\r\n", begin), header.size());
    require(end - begin <= 76);
    begin = end + 2;
  }
  if (const auto mailbox = parse_mailbox(text)) {
    require(mailbox->address.find_first_of("\r\n <>") == std::string::npos);
    require(mailbox->name.find_first_of("\r\n<>") == std::string::npos);
  }
  const std::string body = quoted_printable(text);
  std::size_t column = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    column = body[i] == '\n' ? 0 : column + 1;
    require(column <= 77);
    require(!(column == 1 && body[i] == '.'));
  }
}

void topics(const std::string& text) {
  const std::string topic =
      fill_topic("a/{x}/b", [&](std::string_view) { return std::string(text); });
  require(topic.starts_with("a/") && topic.ends_with("/b"));
  const std::string level = topic.substr(2, topic.size() - 4);
  require(!level.empty() && level.find_first_of("+#/") == std::string::npos && level[0] != '$');
  if (topic_problem(text).empty()) {
    const std::string filled = fill_topic(text, [](std::string_view) { return std::string("v"); });
    require(filled.find_first_of("+#{}") == std::string::npos);
    require(filled.find("//") == std::string::npos);
  }
}

void messages(const std::string& text) {
  tocsin::core::Notification notification;
  notification.receiver = text;
  tocsin::core::NotifiedIssue notified;
  notified.issue.rule = notified.issue.summary = notified.issue.run.job = text;
  notified.issue.runbook_url = notified.issue.recommendation = text;
  notification.issues.push_back(notified);
  require(headline(notification).find_first_of("\r\n") == std::string::npos);
  require(headline(notification).size() <= 240);
  require(text_body(notification, {}).size() < 64 * 1024);
  const std::string html = html_body(notification, {});
  require(html.find("<script") == std::string::npos);
  require(html.find("href=\"javascript") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  headers(text);
  topics(text);
  messages(text);
  (void)parse_retry_after(text, {});
  (void)parse_address(text);
  (void)AddressGuard::create({text});
  (void)webhook_key(text);
  if (const auto rendered = parse_rendered(text)) {
    const auto again = parse_rendered(stored(*rendered));
    require(again && again->body == rendered->body);
  }
  // A secret that the mask itself could spell proves nothing.
  if (size >= 4 && text.find_first_not_of("<redacted>xy") != std::string::npos) {
    require(redact("x" + text + "y", {text}).find(text) == std::string::npos);
  }
  require(printable(text, 10).size() <= 10);
  return 0;
}
