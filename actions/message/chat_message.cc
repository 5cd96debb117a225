#include "actions/message/chat_message.h"

#include <algorithm>
#include <array>
#include <utility>

#include "actions/message/message_parts.h"
#include "actions/message/tone.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxChatFollowers = 8;
constexpr std::size_t kMaxChatAdvice = 3;
constexpr std::size_t kMaxChatLinks = 4;
constexpr std::size_t kMaxChatUrl = 1000;

/// Texts in one tool's markup.
class Writer {
 public:
  explicit Writer(const ChatMarkup& markup) : markup_(markup) {}

  /// At most `limit` bytes of markup. A text that is too long ends in "…".
  [[nodiscard]] std::string fit(std::string_view text, std::size_t limit) const {
    std::string out = markup_.plain(core::visible(text));
    for (std::size_t raw = limit; out.size() > limit && raw > 0;
         raw -= std::max<std::size_t>(1, raw / 8)) {
      out = markup_.plain(core::visible(text, raw));
    }
    return out.size() > limit ? std::string() : out;
  }
  /// Empty where the tool cannot show it as it is.
  /// The newest of `lines` that the tool shows as they are. None of them ends its block of code.
  [[nodiscard]] std::vector<std::string> code(const std::vector<std::string>& lines,
                                              std::size_t limit) const {
    std::string_view end = markup_.code_end;
    while (end.starts_with('\n')) end.remove_prefix(1);
    std::vector<std::string> out;
    for (std::string line : lines) {
      std::replace(line.begin(), line.end(), '`', '\'');
      if (!end.empty() && line.find(end) != std::string::npos) continue;  // it would end the block
      out.push_back(markup_.escapes_code ? markup_.plain(line) : std::move(line));
    }
    return newest(std::move(out), limit);
  }
  [[nodiscard]] std::string command(std::string_view line, std::size_t limit) const {
    if (line.size() > limit) return {};
    if (markup_.escapes_code) return markup_.plain(line);
    return line.find('`') == std::string_view::npos ? std::string(line) : std::string();
  }

 private:
  const ChatMarkup& markup_;
};

/// The rows of a message that say most in a few words, in this order.
Rows telling_rows(const MessageParts& parts) {
  static constexpr std::array kTelling{
      "Why now",  "Acknowledged", "Ended", "Reason",   "Run ended", "Checkpoint",
      "Observed", "Where",        "At",    "Affected", "Caused by", "Since",
      "Replies",  "Stop",         "Rule",  "Run",      "Host",      "Hosts"};
  Rows out;
  const auto take = [&](const Rows& rows, std::string_view name) {
    for (const auto& row : rows) {
      if (row.first == name) out.push_back(row);
    }
  };
  for (const std::string_view name : kTelling) {
    take(parts.ended.rows, name);
    take(parts.did.rows, name);
    take(parts.found, name);
    if (!parts.runs.empty()) take(parts.runs.front().rows, name);
  }
  return out;
}

/// `url` with everything that a markup could take for its own in percent form; empty: no web page.
std::string web_page(std::string_view url) {
  if (!url.starts_with("https://") && !url.starts_with("http://")) return {};
  static constexpr std::string_view kPlain = "-._~:/?#@!$&+,;=%";
  std::string out;
  for (const char c : url) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      static constexpr std::string_view kHex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return out.size() > kMaxChatUrl ? std::string() : out;
}

Rows pages(const MessageParts& parts) {
  Rows out;
  const auto take = [&](const Rows& rows) {
    for (const auto& [name, value] : rows) {
      std::string url = web_page(value);
      if (!url.empty() && out.size() < kMaxChatLinks) out.emplace_back(name, std::move(url));
    }
  };
  take(parts.links);
  for (const Part& run : parts.runs) take(run.rows);
  return out;
}

/// A chat has room for one: to take on what fires, else to look.
const NextCommand* first_command(const MessageParts& parts) {
  for (const NextCommand& one : parts.commands) {
    if (one.line.starts_with("tocsin ack ")) return &one;
  }
  return parts.commands.empty() ? nullptr : &parts.commands.front();
}

std::string follower_line(const Follower& one) {
  return one.tag + " " + one.title + (one.rest.empty() ? "" : " (" + one.rest + ")");
}

}  // namespace

ChatMessage chat_message(const core::Notification& notification, const Sender& sender,
                         const ChatMarkup& markup, const ChatLimits& limits) {
  const MessageParts parts = message_parts(notification, sender);
  const Writer write(markup);
  ChatMessage out;
  out.tone = parts.tone;
  out.title =
      write.fit(std::string(tone_named(parts.tone).sign) + " " + parts.headline, limits.title);
  out.summary = write.fit(parts.summary, limits.text);
  out.description = write.fit(parts.description, limits.text);
  out.console = write.code(parts.console, limits.console);
  for (const auto& [name, value] : telling_rows(parts)) {
    std::string text = write.fit(value, limits.value);
    if (!text.empty() && out.fields.size() < limits.fields)
      out.fields.emplace_back(name, std::move(text));
  }
  for (const std::string& text : parts.advice) {
    if (out.advice.size() < kMaxChatAdvice) out.advice.push_back(write.fit(text, limits.text));
  }
  out.followed = parts.followed;
  for (const Follower& one : parts.followers) {
    if (out.followers.size() == kMaxChatFollowers) break;
    out.followers.push_back(write.fit(follower_line(one), limits.value));
  }
  out.hidden =
      parts.followers.empty() ? parts.hidden : not_shown(notification, 1 + out.followers.size());
  out.links = pages(parts);
  if (const NextCommand* command = first_command(parts))
    out.command = write.command(command->line, limits.text);
  out.footer = write.fit(parts.footer, limits.value);
  out.buttons = answer_buttons(notification, sender);
  return out;
}

bool shorten(ChatMessage& message) {
  const auto drop = [](auto& list, std::size_t keep) {
    if (list.size() <= keep) return false;
    list.pop_back();
    return true;
  };
  if (!message.followers.empty()) {
    // The heading still says how many there are.
    message.followers.clear();
    message.hidden.clear();
    return true;
  }
  if (drop(message.advice, 1)) return true;
  if (auto& lines = message.console; !lines.empty()) {
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>((lines.size() + 1) / 2));
    return true;
  }
  if (!message.description.empty()) return message.description.clear(), true;
  if (drop(message.advice, 0) || drop(message.fields, 0) || drop(message.links, 0)) return true;
  for (std::string* text : {&message.command, &message.footer, &message.followed}) {
    if (!text->empty()) return text->clear(), true;
  }
  return false;
}

ChatMarkup markdown(std::string (*plain)(std::string_view text)) {
  return {.bold = "**",
          .bold_end = "",
          .code = "```\n",
          .code_end = "\n```",
          .plain = plain,
          .link = [](const std::string& name,
                     const std::string& url) { return "[" + name + "](" + url + ")"; },
          .escapes_code = false};
}

std::string bold(const std::string& text, const ChatMarkup& markup) {
  const std::string_view end = markup.bold_end.empty() ? markup.bold : markup.bold_end;
  return std::string(markup.bold) + text + std::string(end);
}

std::string finding(const ChatMessage& message) {
  return message.summary + (message.description.empty() ? "" : "\n" + message.description);
}

std::string field_lines(const ChatMessage& message, const ChatMarkup& markup) {
  std::string out;
  for (const auto& [name, value] : message.fields) {
    out += (out.empty() ? "" : "\n") + bold(name, markup) + ": " + value;
  }
  return out;
}

std::string console_text(const ChatMessage& message, const ChatMarkup& markup) {
  if (message.console.empty()) return {};
  return bold(kConsoleHeading, markup) + "\n" + std::string(markup.code) + joined(message.console) +
         std::string(markup.code_end);
}

std::string advice_text(const ChatMessage& message, const ChatMarkup& markup) {
  if (message.advice.empty()) return {};
  std::string out = bold("What to do", markup);
  for (const std::string& text : message.advice) {
    out += (message.advice.size() > 1 ? "\n• " : "\n") + text;
  }
  return out;
}

std::string followed_text(const ChatMessage& message, const ChatMarkup& markup) {
  std::string out;
  if (!message.followed.empty()) out = bold(message.followed, markup);
  for (const std::string& line : message.followers) out += "\n• " + line;
  if (!message.hidden.empty()) out += (out.empty() ? "" : "\n") + message.hidden;
  return out;
}

std::string command_text(const ChatMessage& message, const ChatMarkup& markup) {
  if (message.command.empty()) return {};
  return std::string(markup.code) + message.command + std::string(markup.code_end);
}

std::string rest(const ChatMessage& message, const ChatMarkup& markup) {
  return paragraphs({console_text(message, markup), advice_text(message, markup),
                     followed_text(message, markup), command_text(message, markup)});
}

std::string link_line(const ChatMessage& message, const ChatMarkup& markup) {
  std::string out;
  for (const auto& [name, url] : message.links) {
    out += (out.empty() ? "" : " · ") + markup.link(name, url);
  }
  return out;
}

std::string paragraphs(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    if (!text.empty()) out += (out.empty() ? "" : "\n\n") + text;
  }
  return out;
}

std::string backslashed(std::string_view text, std::string_view marks) {
  std::string out;
  for (const char c : text) {
    if (marks.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string unmentioned(std::string_view text, std::string_view marks) {
  std::string out;
  for (const char c : backslashed(text, marks)) {
    out += c;
    if (c == '@') out += "\u200b";
  }
  return out;
}

std::string with_entities(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace tocsin::actions
