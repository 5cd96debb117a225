#include "actions/integration/incident_text.h"

#include <algorithm>

#include "actions/message/headline.h"
#include "actions/message/run_words.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr ChatLimits kParts{.title = 240, .text = 2000, .value = 500, .fields = 16, .body = 0};

std::string text_of(const ChatMessage& message, const ChatMarkup& markup) {
  std::string links;
  for (const auto& [name, url] : message.links) {
    links += (links.empty() ? "" : "\n") + markup.link(name, url);
  }
  return paragraphs({finding(message), field_lines(message, markup), rest(message, markup), links,
                     message.footer});
}

std::string fitted(const core::Notification& notification, const Sender& sender,
                   const ChatMarkup& markup, std::size_t limit, bool with_title) {
  ChatMessage message = chat_message(notification, sender, markup, kParts);
  const auto written = [&] {
    const std::string text = text_of(message, markup);
    if (!with_title) return text;
    return paragraphs({markup.plain(core::visible(headline(notification))), text});
  };
  std::string out = written();
  while (out.size() > limit && shorten(message)) out = written();
  return out.size() > limit ? core::visible(headline(notification), limit) : out;
}

}  // namespace

const ChatMarkup& plain_text() {
  static const ChatMarkup kText{
      .bold = "",
      .bold_end = "",
      .code = "",
      .code_end = "",
      .plain = [](std::string_view text) { return std::string(text); },
      .link = [](const std::string& name, const std::string& url) { return name + ": " + url; }};
  return kText;
}

std::string incident_text(const core::Notification& notification, const Sender& sender,
                          const ChatMarkup& markup, std::size_t limit) {
  return fitted(notification, sender, markup, limit, false);
}

std::string incident_news(const core::Notification& notification, const Sender& sender,
                          const ChatMarkup& markup, std::size_t limit) {
  return fitted(notification, sender, markup, limit, true);
}

std::string job_or_cluster(const core::Notification& notification, const Sender& sender) {
  const core::NotifiedIssue* lead = lead_of(notification);
  if (lead == nullptr) return sender.cluster;
  const core::Issue& issue = lead->issue;
  std::string job = issue.run.job.empty() ? issue.labels.get("job") : issue.run.job;
  return job.empty() ? sender.cluster : job;
}

std::string incident_page(const core::Notification& notification, const Sender& sender) {
  const ChatMessage message = chat_message(notification, sender, plain_text(), kParts);
  std::string out;
  // A runbook says what to do and not what is; it comes last.
  for (const std::string_view name : {"Page", "Report", "Tocsin", "Runbook"}) {
    for (const auto& [known, url] : message.links) {
      if (out.empty() && known == name) out = url;
    }
  }
  return out;
}

std::string first_host(const core::Notification& notification) {
  const core::NotifiedIssue* lead = lead_of(notification);
  if (lead == nullptr) return {};
  const core::RunTold* told = run_of(notification, lead->issue);
  if (told != nullptr && !told->hosts.empty()) return told->hosts.front();
  return lead->issue.labels.get("host");
}

core::ValueMap incident_details(const core::Notification& notification, const Sender& sender,
                                std::size_t limit) {
  constexpr std::size_t kMaxValue = 500;
  core::ValueMap out;
  std::size_t size = 0;
  const auto add = [&](const std::string& name, const std::string& value) {
    std::string shown = core::visible(value, kMaxValue);
    const std::string key = core::visible(name, kMaxValue);
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const auto& one) { return one.first == key; });
    if (known || shown.empty() || size + key.size() + shown.size() > limit) return;
    size += key.size() + shown.size();
    out.emplace_back(key, std::move(shown));
  };
  add("cluster", sender.cluster);
  add("receiver", notification.receiver);
  if (const core::NotifiedIssue* lead = lead_of(notification)) {
    add("rule", lead->issue.rule);
    add("issue", lead->issue.event_id);
    for (const auto& [name, value] : lead->issue.labels.entries()) add(name, value);
  }
  return out;
}

}  // namespace tocsin::actions
