#include "actions/message/answer_links.h"

#include <array>
#include <utility>

#include "actions/message/answer_buttons.h"

namespace tocsin::actions {
namespace {

using Purpose = AnswerTarget::Purpose;

constexpr std::string_view kSoftBreak = "=\r\n";
constexpr std::size_t kLongestLine = 75;  // before the '=' of a soft break (RFC 2045, 6.7)
// Ends an unsigned link; a signature has neither '0' nor '1'.
constexpr std::string_view kUnsigned = "-0unsigned0";

std::optional<AnswerTarget> linked(const core::Notification& notification, const Sender& sender,
                                   Purpose purpose) {
  if (!sender.links || sender.external_url.empty() || notification.reason == "digest")
    return std::nullopt;
  auto out = answer_target(notification, purpose);
  if (out) {
    out->until =
        std::chrono::floor<std::chrono::seconds>(notification.decided_at + sender.links->lifetime);
  }
  return out;
}

std::string without_soft_breaks(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t at = text.find(kSoftBreak);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + kSoftBreak.size());
  }
}

std::string with_soft_breaks(std::string_view text) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "\r\n") {
      out += "\r\n";
      column = 0;
      i += 2;
      continue;
    }
    const std::size_t size = text[i] == '=' ? std::min<std::size_t>(3, text.size() - i) : 1;
    // The last character of a line needs no break behind it.
    const std::string_view behind = text.substr(i + size, 2);
    const bool last = behind == "\r\n" || behind.empty();
    if (column + size > kLongestLine + (last ? 1 : 0)) {
      out += kSoftBreak;
      column = 0;
    }
    out += text.substr(i, size);
    column += size;
    i += size;
  }
  return out;
}

}  // namespace

Rows answer_links(const core::Notification& notification, const Sender& sender) {
  static constexpr std::array<std::pair<Purpose, const char*>, 2> kLinks{
      {{Purpose::acknowledge, "Acknowledge"}, {Purpose::silence, "Silence 1 h"}}};
  Rows out;
  if (notification.issues.empty() || is_of_the_router(notification.issues.front().issue, sender))
    return out;
  for (const auto& one : kLinks) {
    const auto target = linked(notification, sender, one.first);
    if (!target) continue;
    if (one.first == Purpose::silence && silenced_labels(notification.issues.front().issue).empty())
      continue;
    out.emplace_back(one.second,
                     sender.external_url + "/act/" + target->text() + std::string(kUnsigned));
  }
  return out;
}

std::string signed_links(std::string text, const core::Notification& notification,
                         const Sender& sender, std::vector<std::string>& signatures) {
  for (const Purpose purpose : {Purpose::acknowledge, Purpose::silence}) {
    const auto target = linked(notification, sender, purpose);
    if (!target) continue;
    const std::string link = target->text();
    const std::string wanted = link + std::string(kUnsigned);
    std::size_t at = text.find(wanted);
    if (at == std::string::npos) continue;
    const auto signature = sender.links->sign(link);
    if (!signature) continue;
    signatures.push_back(*signature);
    for (const std::string put = link + "-" + *signature; at != std::string::npos;
         at = text.find(wanted, at + put.size())) {
      text.replace(at, wanted.size(), put);
    }
  }
  return text;
}

std::string signed_links_in_lines(std::string text, const core::Notification& notification,
                                  const Sender& sender, std::vector<std::string>& signatures) {
  if (!sender.links) return text;
  const std::string whole = without_soft_breaks(text);
  std::string put = signed_links(whole, notification, sender, signatures);
  return put == whole ? text : with_soft_breaks(put);
}

}  // namespace tocsin::actions
